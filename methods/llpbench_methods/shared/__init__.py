"""Functions that several methods use, each written once."""
