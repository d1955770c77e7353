"""TV-GP-UCB: forgets smoothly, by a kernel in time. [Bogunovic2016]."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.config import param
from gp_active_sensing.planning.nonstationary.base import ForgettingUcb

__all__ = ["TvGpUcb"]


@dataclass(frozen=True)
class TvGpUcb(ForgettingUcb):
    """GP-UCB under the kernel ``k(x, x') (1 - ε)^(|t - t'| / 2)``, t in steps.

    The field of the next step is ``√(1-ε) f + √ε g`` with a new g of the same kind: it forgets
    itself, at the same pace everywhere. [Bogunovic2016; Mauduit2025, Eq. 8]
    """

    epsilon: float = param(
        0.03,
        help="share ε of the field's variance that is new after a step",
        above=0.0,
        high=0.999999,
    )

    def drift(self) -> DriftConfig:
        """Return the forgetting kernel with ``τ = -2 Δ / log(1 - ε)``, steps of Δ seconds."""
        time_scale = -2.0 * self.seconds / math.log1p(-self.epsilon)
        return DriftConfig(kind="kernel", time_scale=time_scale)
