"""Verbs of the leaderboard satellite."""
