"""Readings -> belief over the field and over the hyper-parameters of its covariance."""

from __future__ import annotations

from gp_active_sensing.belief.belief import Belief, Posterior
from gp_active_sensing.belief.build import belief_on, build_belief
from gp_active_sensing.belief.config import BeliefConfig
from gp_active_sensing.belief.covariance import (
    FeatureCovariance,
    HyperParameters,
    LocationCovariance,
)
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.belief.given_covariance import GivenCovariance
from gp_active_sensing.belief.graph_covariance import GraphCovariance
from gp_active_sensing.belief.mean import PriorMean

__all__ = [
    "Belief",
    "BeliefConfig",
    "DriftConfig",
    "FeatureCovariance",
    "GivenCovariance",
    "GraphCovariance",
    "HyperParameters",
    "LocationCovariance",
    "Posterior",
    "PriorMean",
    "belief_on",
    "build_belief",
]
