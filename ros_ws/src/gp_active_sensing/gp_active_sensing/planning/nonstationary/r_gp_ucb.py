"""R-GP-UCB: forgets everything now and then. [Bogunovic2016; Zhou2021]."""

from __future__ import annotations

from dataclasses import dataclass

from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.config import param
from gp_active_sensing.planning.nonstationary.base import ForgettingUcb

__all__ = ["RGpUcb"]


@dataclass(frozen=True)
class RGpUcb(ForgettingUcb):
    """GP-UCB that starts again at every multiple of `window`.

    [Bogunovic2016; Zhou2021]
    """

    window: float = param(60.0, help="steps from one restart to the next", unit="step", above=0.0)

    def drift(self) -> DriftConfig:
        """Return restarts."""
        return DriftConfig(kind="restart", window=self.window * self.seconds)
