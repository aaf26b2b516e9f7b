"""The built-in datasets, registered through entry points like anyone else's."""
