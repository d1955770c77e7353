"""Searches for hot spots: Gaussian-process bandits, for one probe or for several together."""
