"""Limits on the field at the places that a probe may enter."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.base import GraphTopology
from gp_active_sensing.types import BoolArray, IntArray

_READ = 0.5
"""Smallest probability of being within the limits at which an observed place is open."""
_STEPS = 2.5
"""Default of `start_radius`, as a multiple of the median distance to the nearest place."""


@dataclass(frozen=True)
class LimitsConfig:
    """Limits on the field at the places that a probe may enter, such as a least depth.

    The limits apply to the noise-free field; null = no limit. A place is open if its value is
    probably within the limits. The smallest probability is `probability` at an unobserved place and
    0.5 at an observed place. An unobserved place that is declared safe is always open.
    """

    at_least: float | None = param(
        None, help="lowest value at which a probe may enter a place", unit="field unit"
    )
    at_most: float | None = param(
        None, help="highest value at which a probe may enter a place", unit="field unit"
    )
    probability: float = param(
        0.99,
        help="a probe may enter an unread place if its value is within the limits with at least "
        "this probability",
        low=0.5,
        high=0.9999,
    )
    start_radius: float | None = param(
        None,
        help="places within this distance of a probe's start are declared safe. null = 2.5 times "
        "the distance between neighbouring places",
        unit="m",
        low=0.0,
    )
    quantity: str = param("", help="name of the limited quantity. Empty = the main quantity")

    @property
    def low(self) -> float:
        """Smallest field value at which a place is open; -inf = no limit."""
        return -math.inf if self.at_least is None else self.at_least

    @property
    def high(self) -> float:
        """Largest field value at which a place is open; inf = no limit."""
        return math.inf if self.at_most is None else self.at_most

    def limits(self) -> LimitsConfig | None:
        """Return the checked limits; None = no limits.

        Raises:
            ConfigError: `at_least` is not below `at_most`, or both are missing although other keys
                are set.
        """
        if self.at_least is None and self.at_most is None:
            if self != LimitsConfig():
                msg = "limits: expected limits.at_least or limits.at_most beside the other keys"
                raise ConfigError(msg)
            return None
        if self.low >= self.high:
            msg = f"limits.at_least: {self.low:g} is not below limits.at_most, {self.high:g}"
            raise ConfigError(msg)
        return self

    def near(self, topology: Topology, at: int) -> IntArray:
        """Return the places that are declared safe for a probe that starts at the place `at`."""
        from scipy.spatial import cKDTree  # here, since it is slow to import

        points, radius = topology.positions, self.start_radius
        apart = np.hypot(*(points - points[at]).T)
        if radius is None:
            steps = np.asarray(cKDTree(points).query(points, k=[min(2, len(points))])[0])
            radius = _STEPS * float(np.median(steps[steps > 0.0])) if steps.any() else 0.0
        return np.flatnonzero(apart <= radius)

    def read_beyond(self, belief: Belief) -> int:
        """Return the number of places whose average reading violates the limits."""
        read = np.flatnonzero(belief.observed)
        if not len(read):
            return 0
        average = belief.transform.inverse(belief.weights @ belief.averages(read))
        return int(((average < self.low) | (average > self.high)).sum())

    def closed(self, belief: Belief, declared: Collection[int]) -> BoolArray:
        """Return the (n,) mask of places that a probe must not enter."""
        read = belief.observed
        inside = np.zeros(belief.n)
        if belief.settled:
            inside = belief.probability_between(self.low, self.high)
        elif read.any():  # the variances of unread places do not exist yet
            mean, _ = belief.predict(np.flatnonzero(read))
            inside[read] = (mean >= self.low) & (mean <= self.high)
        least = np.where(read, _READ, self.probability)
        least[[place for place in declared if not read[place]]] = 0.0
        return np.asarray(inside < least)


def check_limits(topology: Topology) -> None:
    """Raise ConfigError for a map without links: it is unknown which places a drive crosses."""
    if topology.free or not isinstance(topology, GraphTopology):
        msg = (
            f"limits: map {topology.name!r} has places and no moves between them, so nothing says "
            "what a way crosses; give a grid, an area or roads"
        )
        raise ConfigError(msg)
