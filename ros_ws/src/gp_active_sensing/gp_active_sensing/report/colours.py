"""Colours of values and of uncertainty: from dark to bright, readable on light and dark pages."""

from __future__ import annotations

import numpy as np

__all__ = ["DOUBT", "VALUES", "colour_table", "luminance"]

_COUNT = 64
# Neither end fades into a white or a nearly black page; lightness rises all the way.
_VALUES = ("#4b2a86", "#3f559f", "#2f7d9f", "#2aa08c", "#5dbb63", "#a9cc44", "#ead23c")
_DOUBT = ("#3d2c6e", "#6d2f86", "#a33a83", "#d64f6d", "#f07d55", "#f6b052", "#f8de7e")


def colour_table(anchors: tuple[str, ...], count: int = _COUNT) -> tuple[str, ...]:
    """Return `count` colours ("#rrggbb") along straight lines between the anchors."""
    corners = np.array([_channels(anchor) for anchor in anchors])
    at = np.linspace(0.0, len(anchors) - 1.0, count)
    mixed = [np.interp(at, np.arange(len(anchors)), channel) for channel in corners.T]
    return tuple(
        f"#{round(red):02x}{round(green):02x}{round(blue):02x}"
        for red, green, blue in zip(*mixed, strict=True)
    )


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour ("#rrggbb"), 0 black to 1 white."""
    share = np.array(_channels(colour)) / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


VALUES = colour_table(_VALUES)
"""For the field: small values dark, large ones bright."""
DOUBT = colour_table(_DOUBT)
"""For the standard deviation."""
