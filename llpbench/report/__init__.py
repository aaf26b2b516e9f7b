"""Reports: they read result tables only, and know nothing of how results were made."""
