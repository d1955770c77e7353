"""GP-UCB, schedules of the confidence width √β_t, and a regret bound. [Srinivas2010; Wang2016]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.prior import IDENTITY
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning.bandits.base import Bandit, View
from gp_active_sensing.planning.bandits.information_gain import largest_gain, prior_gains
from gp_active_sensing.types import FloatArray

if TYPE_CHECKING:
    from gp_active_sensing.planning.base import Policy

_COMPACT = ("dimension", "extent", "a", "b")


def finite_beta(stage: int, size: int, delta: float) -> float:
    """Return ``β_t = 2 log(|D| t² π² / (6δ))`` for t ≥ 1 and |D| places. [Srinivas2010, Th. 1]."""
    return 2.0 * math.log(size * stage**2 * math.pi**2 / (6.0 * delta))


def compact_beta(
    stage: int, delta: float, *, dimension: int, extent: float, a: float, b: float
) -> float:
    """Return ``β_t = 2 log(2π²t²/(3δ)) + 2d log(t² d b r √log(4da/δ))``. [Srinivas2010, Theorem 2].

    Args:
        stage: index t ≥ 1 of the decision.
        delta: probability δ with which the confidence bound may fail.
        dimension: dimension d of the domain.
        extent: side r of a box ``[0, r]^d`` that contains the domain.
        a: constant in the inequality ``Pr{sup |∂f/∂x_j| > L} ≤ a exp(-(L/b)²)``.
        b: constant in the inequality of `a`.

    Raises:
        ValueError: ``4 d a / δ`` is not above 1.
    """
    inner = math.log(4.0 * dimension * a / delta)
    if not inner > 0.0:
        msg = f"expected 4·dimension·a/delta above 1, got {4.0 * dimension * a / delta:.6g}"
        raise ValueError(msg)
    lattice = stage**2 * dimension * b * extent * math.sqrt(inner)
    first = 2.0 * math.log(2.0 * math.pi**2 * stage**2 / (3.0 * delta))
    return first + 2.0 * dimension * math.log(lattice)


def rkhs_beta(stage: int, delta: float, *, norm: float, gain: float) -> float:
    """Return ``β_t = 2 ‖f‖²_k + 300 γ_t log³(t/δ)``. [Srinivas2010, Theorem 3].

    Args:
        stage: index t ≥ 1 of the decision.
        delta: probability δ with which the confidence bound may fail.
        norm: upper bound on the RKHS norm ‖f‖_k of the field.
        gain: largest information gain γ_t of t readings, or an upper bound on γ_t [nat].
    """
    return 2.0 * norm**2 + 300.0 * gain * math.log(stage / delta) ** 3


@dataclass(frozen=True)
class Schedule:
    """Configuration keys for β_t in policies that use an upper confidence bound."""

    schedule: str = param(
        "finite",
        help="assumption behind β_t: finite = a finite set of places; compact = a compact convex "
        "region; rkhs = functions of bounded norm; constant = a constant β_t",
        choices=("finite", "compact", "rkhs", "constant"),
    )
    delta: float = param(
        0.1, help="probability that the confidence bounds fail", above=0.0, high=0.999999
    )
    scale: float = param(
        1.0, help="divisor of β_t. The theory needs 1; 5 does well in experiments", above=0.0
    )
    beta: float = param(4.0, help="constant: value of β_t before the division by scale", low=0.0)
    dimension: int | None = param(None, help="compact: dimension d of the region", low=1)
    extent: float | None = param(
        None,
        help="compact: side r of a box that contains the region",
        unit="feature units",
        above=0.0,
    )
    a: float | None = param(
        None,
        help="compact: factor a of the bound Pr{sup |∂f/∂x_j| > L} ≤ a·exp(-(L/b)²)",
        above=0.0,
    )
    b: float | None = param(
        None,
        help="compact: scale b of the bound a·exp(-(L/b)²)",
        unit="unit of the readings per feature unit",
        above=0.0,
    )
    norm: float | None = param(
        None, help="rkhs: bound on the norm ‖f‖_k of the field about its mean", low=0.0
    )

    def __post_init__(self) -> None:
        missing = [key for key in _COMPACT if getattr(self, key) is None]
        problem = ""
        if self.schedule == "rkhs" and self.norm is None:
            problem = "norm: is needed for schedule: rkhs"
        elif self.schedule == "compact" and missing:
            problem = f"{missing[0]}: is needed for schedule: compact (with {_COMPACT})"
        elif self.schedule == "compact":
            try:
                self._compact(1)
            except ValueError as error:
                problem = f"a: {error}"
        if problem:
            raise ConfigError(problem)

    def width(self, stage: int, size: int, belief: Belief) -> float:
        """Return ``√(β_t / scale)`` [standard deviations]; 0 if β_t is negative.

        `stage` is the index t ≥ 1 of the decision, and `size` is the number of places. Only
        ``schedule: rkhs`` uses `belief`.
        """
        return math.sqrt(max(self.unscaled(stage, size, belief), 0.0) / self.scale)

    def unscaled(self, stage: int, size: int, belief: Belief) -> float:
        """Return β_t before the division by `scale`."""
        if self.schedule == "finite":
            return finite_beta(stage, size, self.delta)
        if self.schedule == "compact":
            return self._compact(stage)
        if self.schedule == "rkhs":
            gain = largest_gain(belief, stage)
            return rkhs_beta(stage, self.delta, norm=self.norm or 0.0, gain=gain)
        return self.beta

    def _compact(self, stage: int) -> float:
        d, r, a, b = (getattr(self, key) for key in _COMPACT)
        return compact_beta(stage, self.delta, dimension=d, extent=r, a=a, b=b)


@dataclass(frozen=True)
class GpUcb(Schedule, Bandit):
    """Policy that chooses the largest upper confidence bound, ``argmax_x μ(x) + √β_t σ(x)``.

    A regret bound holds with probability 1 - δ; see `regret_bound`. [Srinivas2010, Eq. 6]
    """

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``μ + √β_t σ`` [unit of the readings]."""
        return view.mean + self.width(view.stage, view.size, belief) * view.std


def regret_bound(policy: Policy, belief: Belief, readings: int) -> float | None:
    """Return an upper bound on the cumulative regret of T = `readings` decisions; None = unknown.

    The bound is ``√(C₁ T β_T γ_T)``, plus 2 for ``schedule: compact``. [Srinivas2010, Theorems 1-3]
    Here ``C₁ = 8 v / log(1 + v/σ²)``, with the largest prior variance v = max k(x, x).

    The bound is known for `GpUcb` with ``scale`` ≤ 1, one probe, and a schedule that is not
    constant. The belief must have one hyperparameter candidate, a known variance scale, and no
    transform.
    """
    # Subclasses choose in batches or forget readings, so the bound does not hold for them.
    if type(policy) is not GpUcb or policy.schedule == "constant" or policy.scale > 1.0:
        return None
    if belief.transform is not IDENTITY or not belief.scale_known or readings < 1:
        return None
    if np.count_nonzero(belief.weights) != 1:
        return None
    (gains,) = prior_gains(belief).values()
    beta = policy.unscaled(readings, belief.n, belief) / policy.scale
    v = gains.largest_variance
    c1 = 8.0 * v / math.log1p(v / gains.noise_variance)
    extra = 2.0 if policy.schedule == "compact" else 0.0
    gain = largest_gain(belief, readings)
    return math.sqrt(c1 * readings * max(beta, 0.0) * gain) + extra
