"""What is published: the leaderboards folder, its lines, and what is known beside the numbers."""
