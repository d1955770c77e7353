"""Searches for hot spots that move: bandits that forget, one policy a file."""

from __future__ import annotations
