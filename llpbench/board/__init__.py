"""Publishing results: what comes in, what it is held to, how it is made again, and what is built from it."""
