"""Publishing results: what is accepted, the board made from it, its page."""
