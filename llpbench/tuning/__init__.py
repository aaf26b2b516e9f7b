"""Searching for parameters on held-back data."""
