"""Searches for hot spots that move: bandits that forget."""
