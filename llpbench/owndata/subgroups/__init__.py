"""Totals of subgroups, with intervals."""
