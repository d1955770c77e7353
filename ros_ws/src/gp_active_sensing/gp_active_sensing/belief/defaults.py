"""Defaults of a belief: kernels, and the parts of the field and of the noise.

A few points stand for all: a smooth field read with a good sensor, one with much of each place's
own, one with much noise, one with both; and a field of which no place tells of another. The
readings weigh them. What lies between two of them is predicted nearly as well by their mixture.
"""

from __future__ import annotations

import math
from itertools import product

from gp_active_sensing.belief.covariance import Parts
from gp_active_sensing.kernels import NONE

__all__ = [
    "NOISE_SHARES",
    "NONE_SHARES",
    "PLANE_KERNELS",
    "ROAD_KERNELS",
    "SHARES",
    "parts_of_field",
    "parts_of_noise",
    "with_attribute_parts",
]

PLANE_KERNELS = ("matern12", "matern32", "se", NONE)
"""Of a field over an area: rough, with a slope, very smooth, or with nothing to learn from."""
ROAD_KERNELS = ("graph_matern12", "graph_matern32", "matern12", NONE)
"""Of a field on roads: along the roads, rough or with a slope, or as the crow flies."""
SHARES = ((0.97, 0.015, 0.015), (0.6, 0.35, 0.05), (0.6, 0.15, 0.25), (0.3, 0.5, 0.2))
"""Shares of a reading's variance: the smooth part, what is each place's own, and noise."""
NONE_SHARES = ((0.0, 0.95, 0.05), (0.0, 0.7, 0.3))
"""The same where nothing is smooth."""
NOISE_SHARES = (0.03, 0.12, 0.5)
"""Noise as a share of the field's standard deviation, where one of them is known."""
OWN_SHARES = (0.05, 0.5)
"""Share of the field's variance that is each place's own, where the noise is known."""
ATTRIBUTE_SHARE = 0.3
"""Variance that all attributes explain together, in variances of a reading about that mean."""


def parts_of_field(std: float | None, kernel: str) -> tuple[Parts, ...]:
    """Return the parts for shares of the variance.

    Args:
        std: of the field, both parts of it; None = not known: all are shares of 1.
        kernel: that they are for.
    """
    found = []
    for smooth, own, noise in NONE_SHARES if kernel == NONE else SHARES:
        parts = Parts(math.sqrt(smooth), math.sqrt(noise), math.sqrt(own))
        if kernel == NONE:
            parts = Parts(math.sqrt(own), math.sqrt(noise))
        found.append(parts if std is None else parts.scaled(std / math.sqrt(smooth + own)))
    return tuple(found)


def parts_of_noise(noise: float, kernel: str) -> tuple[Parts, ...]:
    """Return the parts where only the noise of a reading is known: the field is larger by much."""
    stds = [noise / share for share in NOISE_SHARES]
    if kernel == NONE:
        return tuple(Parts(std, noise) for std in stds)
    return tuple(
        Parts(std * math.sqrt(1.0 - own), noise, std * math.sqrt(own))
        for std, own in product(stds, OWN_SHARES)
    )


def with_attribute_parts(parts: tuple[Parts, ...]) -> tuple[Parts, ...]:
    """Return parts, and those of them with the most of their own once more, with attributes.

    What attributes explain is a rough part of the field: where nearly all of it is smooth, they
    have nothing to explain.
    """
    half = sorted(parts, key=lambda p: -p.place_std / p.signal_std)[: max(1, len(parts) // 2)]
    found = []
    for each in half:
        total = each.signal_std**2 + each.place_std**2 + each.noise_std**2
        found.append(each._replace(attribute_std=math.sqrt(ATTRIBUTE_SHARE * total)))
    return (*parts, *found)
