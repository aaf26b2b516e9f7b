"""Published cells made again: one by one, or drawn at random and with fresh seeds."""
