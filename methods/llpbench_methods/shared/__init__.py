"""What several methods and libraries compute the same way, each once."""
