"""The tables of a suite as a paper prints them."""
