"""Gaussian-process bandits: searches for extrema with one or several probes."""
