"""Score models and set the confidence of their probabilities, from bags alone."""
