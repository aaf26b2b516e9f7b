"""Verbs around runs: data files, the cache, folders and variables, plugins, shell completion, freezing suites."""
