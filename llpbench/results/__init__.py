"""The results folder, and the one aggregation that tables, board and page are built from."""
