"""Fit and compare methods on your own tables: ``llpbench.fit``, ``llpbench.compare``."""
