"""Fits of one method on bags of one's own."""
