"""A model for your own bags: ``llpbench.fit``."""
