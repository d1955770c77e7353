"""Gaussian-process belief over a field and over the hyper-parameters of the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.belief.belief import Belief
    from gp_active_sensing.belief.build import belief_on, build_belief
    from gp_active_sensing.belief.config import BeliefConfig
    from gp_active_sensing.belief.drift import DriftConfig
    from gp_active_sensing.belief.prior import (
        FeatureCovariance,
        HyperParameters,
        LocationCovariance,
        PriorMean,
    )

__all__ = [
    "Belief",
    "BeliefConfig",
    "DriftConfig",
    "FeatureCovariance",
    "HyperParameters",
    "LocationCovariance",
    "PriorMean",
    "belief_on",
    "build_belief",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "belief": ("Belief",),
        "build": ("belief_on", "build_belief"),
        "config": ("BeliefConfig",),
        "drift": ("DriftConfig",),
        "prior": ("FeatureCovariance", "HyperParameters", "LocationCovariance", "PriorMean"),
    },
)
