"""Read the tables, bags and counts that a user passes."""
