"""Cells on other machines: the Dask executor."""
