"""Build the conditioning that a drift configuration asks for."""

from __future__ import annotations

from gp_active_sensing.belief.conditioning import Conditioning
from gp_active_sensing.belief.covariance import LocationCovariance
from gp_active_sensing.belief.drift.config import Ageing, DriftConfig
from gp_active_sensing.belief.mean import PriorMean

__all__ = ["ageing_of", "conditioning_for"]


def ageing_of(drift: DriftConfig, covariance: LocationCovariance) -> Ageing | None:
    """Return how readings age; None where they do not."""
    if not drift.changing:
        return None
    return Ageing(drift, min(h.noise_std for h in covariance.hyperparameters))


def conditioning_for(
    covariance: LocationCovariance,
    mean: PriorMean,
    *,
    scale_known: bool,
    ageing: Ageing | None,
) -> Conditioning:
    """Return L Gaussian processes before their first reading.

    Args:
        covariance: prior covariance between locations under each λ.
        mean: prior mean of the field.
        scale_known: False to integrate out a factor of each λ's covariance and noise.
        ageing: how readings lose their worth; None = they do not.
    """
    if ageing is None:
        return Conditioning(covariance, mean, scale_known=scale_known)
    from gp_active_sensing.belief.drift.aged import AgedConditioning
    from gp_active_sensing.belief.drift.forgetting import ForgettingConditioning

    kinds = ForgettingConditioning if ageing.config.kind == "kernel" else AgedConditioning
    return kinds(covariance, mean, scale_known=scale_known, ageing=ageing)
