"""Checks of published results: derived values, recomputed metrics, traceable code, and the whole leaderboard."""
