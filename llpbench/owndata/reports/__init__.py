"""What a user is told of a model: its report, as text and as a page."""
