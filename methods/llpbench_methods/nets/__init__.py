"""Shared networks: one training loop, one set of losses, three engines (jax, tensorflow, torch)."""
