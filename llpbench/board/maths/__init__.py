"""The mathematics of a leaderboard: pure functions that are fed tables of numbers."""
