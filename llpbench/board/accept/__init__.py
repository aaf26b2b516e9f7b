"""What comes in: results of a run, predictions that are handed in, and what a submission may change."""
