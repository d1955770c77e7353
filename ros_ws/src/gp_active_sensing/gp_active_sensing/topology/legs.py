"""Straight legs between places: how long they are, and how long they take up and down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = ["Spacing", "Speeds", "spacing_of"]


@dataclass(frozen=True)
class Speeds:
    """How fast a probe is on a straight leg.

    Args:
        along: the leg [m/s].
        climb: at most upwards [m/s]; None = no less than along the leg.
        descent: at most downwards [m/s]; likewise.
    """

    along: float = 1.0
    climb: float | None = None
    descent: float | None = None

    @property
    def least(self) -> float:
        """No leg is slower than this [m/s]."""
        return min(self.along, self.climb or self.along, self.descent or self.along)

    def metres(self, offsets: FloatArray) -> FloatArray:
        """Return (…) lengths of legs given by their offsets (…, 2 or 3): x, y, z upwards [m]."""
        flat = np.hypot(offsets[..., 0], offsets[..., 1])
        return np.asarray(flat if offsets.shape[-1] == 2 else np.hypot(flat, offsets[..., 2]))

    def seconds(self, offsets: FloatArray, metres: FloatArray) -> FloatArray:
        """Return (…) durations of legs: a steep one takes as long as its climb does.

        Args:
            offsets: (…, 2 or 3) x, y, z upwards [m].
            metres: (…) their lengths.
        """
        seconds = metres / self.along
        if offsets.shape[-1] == 3:
            up = offsets[..., 2]
            if self.climb is not None:
                seconds = np.maximum(seconds, up / self.climb)
            if self.descent is not None:
                seconds = np.maximum(seconds, -up / self.descent)
        return np.asarray(seconds)

    def leg(self, start: FloatArray, end: FloatArray) -> tuple[float, float]:
        """Return metres and seconds from one point (2 or 3,) to another."""
        offset = np.asarray(end - start)
        metres = self.metres(offset)
        return float(metres), float(self.seconds(offset, metres))


class Spacing(NamedTuple):
    """How far apart neighbouring places are, typically [m].

    Args:
        across: in the plan view, between positions that differ.
        up: between heights one above the other; None where no place lies above another.
    """

    across: float
    up: float | None

    @property
    def ratio(self) -> float:
        """Of a step up to one across; 1 where there is only one kind."""
        return 1.0 if self.up is None or not self.across else self.up / self.across


def spacing_of(points: FloatArray) -> Spacing:
    """Return the steps between places at (n, 3) points: x, y, z [m]."""
    from scipy.spatial import cKDTree  # slow to import, and seldom wanted

    plan, column = np.unique(np.round(points[:, :2], 6), axis=0, return_inverse=True)
    across = 0.0
    if len(plan) > 1:
        distances, _ = cKDTree(plan).query(plan, k=2)
        across = float(np.median(np.asarray(distances)[:, 1]))
    order = np.lexsort((points[:, 2], column.reshape(-1)))
    same = np.diff(column.reshape(-1)[order]) == 0
    gaps = np.diff(points[order, 2])[same]
    gaps = gaps[gaps > 1e-9]
    return Spacing(across, float(np.median(gaps)) if gaps.size else None)
