"""Readings -> belief over the field and over the hyper-parameters of its covariance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.belief.belief import Belief, Posterior
    from gp_active_sensing.belief.build import belief_on, build_belief
    from gp_active_sensing.belief.config import BeliefConfig
    from gp_active_sensing.belief.drift import DriftConfig
    from gp_active_sensing.belief.empirical import EmpiricalCovariance
    from gp_active_sensing.belief.from_kernel_model import KernelCovariance, belief_of
    from gp_active_sensing.belief.graph_covariance import GraphCovariance
    from gp_active_sensing.belief.prior import (
        FeatureCovariance,
        HyperParameters,
        LocationCovariance,
        PriorMean,
    )
    from gp_active_sensing.belief.run_copy import as_begun, keep_model, with_mark

__all__ = [
    "Belief",
    "BeliefConfig",
    "DriftConfig",
    "EmpiricalCovariance",
    "FeatureCovariance",
    "GraphCovariance",
    "HyperParameters",
    "KernelCovariance",
    "LocationCovariance",
    "Posterior",
    "PriorMean",
    "as_begun",
    "belief_of",
    "belief_on",
    "build_belief",
    "keep_model",
    "with_mark",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "belief": ("Belief", "Posterior"),
        "build": ("belief_on", "build_belief"),
        "config": ("BeliefConfig",),
        "prior": ("FeatureCovariance", "HyperParameters", "LocationCovariance", "PriorMean"),
        "drift": ("DriftConfig",),
        "empirical": ("EmpiricalCovariance",),
        "graph_covariance": ("GraphCovariance",),
        "from_kernel_model": ("KernelCovariance", "belief_of"),
        "run_copy": ("as_begun", "keep_model", "with_mark"),
    },
)
