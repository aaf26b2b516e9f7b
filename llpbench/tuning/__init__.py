"""Search for parameters on held-out data."""
