"""Types of the board as plain data."""
