"""The inner loops of the engines, compiled by numba."""
