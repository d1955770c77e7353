"""Gaussian-process bandits, which search for extrema with one or several probes."""
