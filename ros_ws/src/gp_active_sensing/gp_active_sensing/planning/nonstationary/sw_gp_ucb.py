"""SW-GP-UCB: remembers the latest readings only. [Zhou2021]."""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.config import param
from gp_active_sensing.planning.nonstationary.base import ForgettingUcb

__all__ = ["SwGpUcb"]


@dataclass(frozen=True)
class SwGpUcb(ForgettingUcb):
    """GP-UCB on the readings of a sliding window: the latest W, one a step. [Zhou2021]."""

    window: float = param(
        60.0, help="steps W whose readings count, the present one included", unit="step", above=0.0
    )

    def drift(self) -> DriftConfig:
        """Return the window."""
        return DriftConfig(kind="window", window=self.window * self.seconds)
