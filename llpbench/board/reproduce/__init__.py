"""Reproducing published cells: ``rerun`` and ``leaderboard verify``."""
