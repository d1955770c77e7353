"""W-GP-UCB: old readings weigh less. [Deng2022]."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.config import param
from gp_active_sensing.planning.nonstationary.base import ForgettingUcb

__all__ = ["WGpUcb"]


@dataclass(frozen=True)
class WGpUcb(ForgettingUcb):
    """GP-UCB with weights γ^a of readings a steps old: their noise variance is ``σ² γ^(-a)``.

    The weighted regression ``argmin_f Σ_i w_i (y_i - f(x_i))² + λ ‖f‖²``, of which the posterior
    deviation is taken as well. [Deng2022; Mauduit2025, Eq. 9]
    """

    gamma: float = param(0.98, help="weight γ of a reading one step old", above=0.0, high=0.999999)

    def drift(self) -> DriftConfig:
        """Return weights with ``τ = -Δ / log γ``, steps of Δ seconds."""
        return DriftConfig(kind="weights", time_scale=-self.seconds / math.log(self.gamma))
