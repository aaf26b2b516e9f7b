"""Executors: where and how cells run. Every one runs the same thing, one cell in a process of its own."""
