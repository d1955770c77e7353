"""What the searches that forget share: GP-UCB on a belief whose readings age."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.gp_ucb import GpUcb

__all__ = ["ForgettingUcb", "recommended_share", "recommended_window"]


@dataclass(frozen=True)
class ForgettingUcb(GpUcb):
    """GP-UCB that brings a drift of its own to the belief.

    The papers count time in steps, one a decision; a probe takes as long as it takes. What is
    given for a step is one of `step` seconds, or of one second.
    """

    step: float | None = param(
        None,
        help="seconds that count as one step of the policy's other parameters, such as the usual "
        "time between decisions; null = one second",
        unit="s",
        above=0.0,
    )

    @abstractmethod
    def drift(self) -> DriftConfig:
        """Return how the belief's readings age; engines build the belief with it."""

    @property
    def seconds(self) -> float:
        """Length of a step [s]."""
        return 1.0 if self.step is None else self.step


def recommended_window(steps: int, variation: float, gain: float) -> float:
    """Return the window, in steps, of the least regret bound: ``γ_T^(1/4) (T / B_T)^(1/2)``.

    For `r_gp_ucb` and `sw_gp_ucb`, up to a constant; at least one step, at most all of them.
    [Zhou2021]

    Args:
        steps: T, decisions of the whole mission.
        variation: B_T, ``Σ_t ‖f_{t+1} - f_t‖_k``; 1 where nothing is known of it.
        gain: γ_T, largest information gain of T readings [nat].
    """
    window = math.sqrt(math.sqrt(gain) * steps / variation)
    return min(max(window, 1.0), float(steps))


def recommended_share(steps: int, variation: float, gain: float) -> float:
    """Return the weight γ of a reading one step old: ``1 - γ_T^(-1/4) (B_T / T)^(1/2)``.

    For `w_gp_ucb`, up to a constant. [Deng2022]

    Args:
        steps: T, decisions of the whole mission.
        variation: B_T, see `recommended_window`.
        gain: γ_T [nat].
    """
    return 1.0 - 1.0 / max(recommended_window(steps, variation, gain), 1.0 + 1e-9)
