"""What a user gives, read and checked: tables, bags and counts in the forms people have them."""
