"""Leaderboards: published results in a compact form, and what is built from them."""
