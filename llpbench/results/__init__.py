"""What is kept: the results folder, and the one aggregation that everything which shows numbers uses."""
