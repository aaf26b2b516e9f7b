"""The board as plain data: what a page or a program reads."""
