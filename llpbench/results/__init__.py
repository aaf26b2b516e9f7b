"""What is kept: the results folder, and THE table that everything which shows numbers reads."""
