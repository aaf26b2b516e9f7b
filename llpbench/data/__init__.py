"""Data files: where they come from, their checksums, the cache."""
