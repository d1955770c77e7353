"""Convert an estimate to the `belief:` section of a scenario."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import yaml

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.learning.fit import HyperParameterEstimate
from gp_active_sensing.types import FloatArray

__all__ = ["CANDIDATES", "WAYS", "belief_section", "factors", "section_text"]

WAYS = ("grid", "paper", "point")
"""How Λ is made of the estimate."""
CANDIDATES = 7
"""Length-scales of a grid."""
NOISE_SHARES, OWN_SHARE = (0.2, 0.8), 0.5
"""Of what readings differ by from the smooth part, where nobody knows what it is made of: shares of
the variance that may be noise, and the one that is each place's own."""
_LEAST, _MOST = math.log(2.0), math.log(8.0)
"""The grid reaches two standard errors to either side, and at least and at most so far."""


def factors(estimate: HyperParameterEstimate, way: str) -> FloatArray:
    """Return the (K,) factors on the estimated length-scales that make Λ.

    grid: log-spaced about the estimate, two standard errors to either side; paper: 1, 4, 6, …, 14,
    that is ℓ* and 2(i+1)ℓ* for i = 1 … 6 [Hoang2014, Sec. 4.2]; point: 1.

    Raises:
        ConfigError: no such way.
    """
    if way == "point":
        return np.ones(1)
    if way == "paper":
        return np.array([1.0, *(2.0 * (i + 1) for i in range(1, 7))])
    if way != "grid":
        msg = f"lambda: expected one of {', '.join(WAYS)}, got {way!r}"
        raise ConfigError(msg)
    reach = min(max(2.0 * estimate.errors[0], _LEAST), _MOST)
    return np.exp(np.linspace(-reach, reach, CANDIDATES))


def belief_section(
    estimate: HyperParameterEstimate, config: BeliefConfig, way: str = "grid"
) -> BeliefConfig:
    """Return the belief that an estimate gives a mission on a field of the same kind.

    Signal and noise are taken as known. So is what belongs to each place alone, where the readings
    say that there is something; where they do not, nothing is a candidate as well; where they could
    not tell it from the noise, a field with some of it is held for possible, see `_parts`. The mean
    is the one found: on another day it may differ by as much as the field does from place to place,
    so this is its standard deviation (for a linear mean at least the largest slope, which it is the
    standard deviation of as well).

    Args:
        estimate: what was learned.
        config: with which kernel, mean and transform.
        way: how Λ is made of it, see `factors`.
    """
    scales = [
        tuple(_rounded(factor * ell) for ell in estimate.length_scales)
        for factor in factors(estimate, way)
    ]
    noise, own = _parts(estimate, way)
    spread = max(estimate.signal_std, *(abs(slope) for slope in estimate.mean[1:]), 0.0)
    return dataclasses.replace(
        config,
        length_scales=tuple(ell if len(ell) > 1 else ell[0] for ell in scales),
        signal_std=(_rounded(estimate.signal_std),),
        noise_std=tuple(_rounded(std) for std in noise),
        place_std=tuple(_rounded(std) for std in own),
        weights=None,
        mean_value=_rounded(estimate.mean[0]),
        mean_std=_rounded(spread),
        # What the mission that it was learned from may have begun with.
        model=None,
        kernels=BeliefConfig.kernels,
        scales=BeliefConfig.scales,
        model_mark=None,
    )


def _parts(
    estimate: HyperParameterEstimate, way: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return candidates of noise and of what is each place's own.

    Where only their sum is known, half of its variance is taken for each place's own: intervals of
    the true value at places that were not read are then neither far too narrow nor far too wide,
    whatever it is. Of the noise a low and a high share are candidates, which readings of a place
    that is read again tell apart.
    """
    if estimate.place_gain is None:
        shares = (1.0 - OWN_SHARE,) if way == "point" else NOISE_SHARES
        both = estimate.noise_std
        return tuple(math.sqrt(s) * both for s in shares), (math.sqrt(OWN_SHARE) * both,)
    noise, own = (estimate.noise_std,), estimate.place_std
    if way == "point":
        return noise, (own if estimate.place_gain > 0.0 else 0.0,)
    return noise, ((own,) if estimate.place_told else (0.0, own))


def section_text(section: BeliefConfig, remarks: Mapping[str, str]) -> str:
    """Return YAML with the keys that differ from their defaults, under `belief:`.

    Args:
        section: the belief.
        remarks: lines of comment above it, word and text.
    """
    defaults = {f.name: f.default for f in dataclasses.fields(BeliefConfig)}
    kept: dict[str, Any] = {
        key: value
        for key, value in to_mapping(section).items()
        if key in ("kernel", "mean_value", "mean_std") or getattr(section, key) != defaults[key]
    }
    body = yaml.safe_dump({"belief": kept}, sort_keys=False, default_flow_style=None, width=100)
    return "".join(f"# {word}: {text}\n" for word, text in remarks.items()) + body


def _rounded(value: float) -> float:
    """Return a number with three digits: more would pretend to be known."""
    return float(f"{value:.3g}")
