"""The built-in methods, registered like anyone else's."""
