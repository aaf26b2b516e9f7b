"""What every published result is held to."""
