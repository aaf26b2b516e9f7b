"""Statistics of a leaderboard: pure functions of tables of numbers."""
