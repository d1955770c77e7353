"""GP-UCB that forgets: smoothly (TV), at restarts (R), by a window (SW) or by weights (W)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.gp_ucb import GpUcb

__all__ = [
    "ForgettingUcb",
    "RGpUcb",
    "SwGpUcb",
    "TvGpUcb",
    "WGpUcb",
    "recommended_share",
    "recommended_window",
]


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


@dataclass(frozen=True)
class RGpUcb(ForgettingUcb):
    """GP-UCB that starts again at every multiple of `window`.

    [Bogunovic2016; Zhou2021]
    """

    window: float = param(60.0, help="steps from one restart to the next", unit="step", above=0.0)

    def drift(self) -> DriftConfig:
        """Return restarts."""
        return DriftConfig(kind="restart", window=self.window * self.seconds)


@dataclass(frozen=True)
class SwGpUcb(ForgettingUcb):
    """GP-UCB on the readings of a sliding window: the latest W, one a step. [Zhou2021]."""

    window: float = param(
        60.0, help="steps W whose readings count, the present one included", unit="step", above=0.0
    )

    def drift(self) -> DriftConfig:
        """Return the window."""
        return DriftConfig(kind="window", window=self.window * self.seconds)


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
