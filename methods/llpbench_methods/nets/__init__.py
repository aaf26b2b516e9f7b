"""Shared networks: one training loop, one set of losses, three backends (jax, tensorflow, torch)."""
