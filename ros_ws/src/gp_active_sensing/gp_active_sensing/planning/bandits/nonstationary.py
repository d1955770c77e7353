"""Bandits for fields that change with time: GP-UCB that forgets readings, and SparQ-GP-UCB."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.config import param
from gp_active_sensing.planning.bandits.base import Bandit, View, stage_of
from gp_active_sensing.planning.bandits.gp_ucb import GpUcb
from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.planning.dpp import draw_kdpp
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray, IntArray

_JITTER = 1e-6
"""Number that is added to the diagonal of a correlation matrix."""


@dataclass(frozen=True)
class Stepwise:
    """Configuration keys of policies that count time in steps and may ask an expert.

    Before decision t, an expert is asked about ``⌈c log^d t⌉`` visited places, where c is
    `query_factor` and d is `query_power`.
    """

    step: float = param(
        1.0,
        help="length of one time step. The policy's other parameters are given in or per such "
        "steps. A usual choice is the time between two decisions",
        unit="s",
        above=0.0,
    )
    query_factor: float = param(
        0.0,
        help="factor c in ⌈c log^d t⌉, the number of visited places that an expert is asked about "
        "at decision t. 0 = no expert is asked",
        low=0.0,
    )
    query_power: float = param(
        1.0,
        help="exponent d in ⌈c log^d t⌉. In theory d is the dimension of the domain",
        low=0.0,
        high=6.0,
    )

    @property
    def asks(self) -> bool:
        """True if the policy asks an expert."""
        return self.query_factor > 0.0

    def queries(
        self,
        belief: Belief,
        topology: Topology,
        *,
        rng: np.random.Generator,
        state: PolicyState,
        places: Collection[int] | None = None,
    ) -> tuple[int, ...]:
        """Draw from a Q-DPP the places about which an expert is asked.

        The result is a subset of `places`, or of the visited places if `places` is None.
        """
        number = query_number(stage_of(state), self.query_factor, self.query_power)
        known = np.flatnonzero(belief.visited)
        asked = known if places is None else np.array(sorted(set(places)), dtype=np.int64)
        number = min(number, known.size, asked.size)
        return tuple(spread_places(belief, asked, number, rng).tolist()) if number else ()


@dataclass(frozen=True)
class ForgettingUcb(Stepwise, GpUcb):
    """Base class of GP-UCB policies that define how the belief forgets readings.

    If `query_factor` is above 0, an expert is asked before each decision.
    """

    @abstractmethod
    def drift(self) -> DriftConfig:
        """Return the drift model of the belief."""


@dataclass(frozen=True)
class TvGpUcb(ForgettingUcb):
    """As gp_ucb, for a field that changes: each step replaces a fraction ε of its variance.

    The kernel is ``k(x, x') (1 - ε)^(|t - t'| / 2)``, with t in steps. After each step the field f
    becomes ``√(1-ε) f + √ε g``, where g is an independent field with the same prior.
    [Bogunovic2016; Mauduit2025, Eq. 8]
    """

    epsilon: float = param(
        0.03,
        help="fraction ε of the field's variance that is new after a step",
        above=0.0,
        high=0.999999,
    )

    def drift(self) -> DriftConfig:
        """Return the drift model; its time scale is ``-2 Δ / log(1 - ε)`` for Δ = `step`."""
        time_scale = -2.0 * self.step / math.log1p(-self.epsilon)
        return DriftConfig(kind="kernel", time_scale=time_scale)


@dataclass(frozen=True)
class SwGpUcb(ForgettingUcb):
    """As gp_ucb, with only the readings of the last W steps (key window). [Zhou2021]."""

    kind: ClassVar[str] = "window"
    window: float = param(
        60.0,
        help="number of latest steps W whose readings count. r_gp_ucb: number of steps from one "
        "restart to the next",
        unit="step",
        above=0.0,
    )

    def drift(self) -> DriftConfig:
        """Return the drift model, whose window is in seconds."""
        return DriftConfig(kind=self.kind, window=self.window * self.step)


@dataclass(frozen=True)
class RGpUcb(SwGpUcb):
    """As gp_ucb, but all readings are dropped after every W steps. [Bogunovic2016; Zhou2021]."""

    kind: ClassVar[str] = "restart"


@dataclass(frozen=True)
class WGpUcb(ForgettingUcb):
    """As gp_ucb, with less weight for older readings.

    A reading of age a in steps has the noise variance ``σ² γ^(-a)``. The mean solves the weighted
    regression ``argmin_f Σ_i w_i (y_i - f(x_i))² + λ ‖f‖²`` with ``λ = σ²`` and the weights
    ``w_i = γ^a``. [Deng2022; Mauduit2025, Eq. 9]
    """

    gamma: float = param(0.98, help="weight γ of a reading one step old", above=0.0, high=0.999999)

    def drift(self) -> DriftConfig:
        """Return the drift model; its time scale is ``-Δ / log γ`` for Δ = `step`, γ = `gamma`."""
        return DriftConfig(kind="weights", time_scale=-self.step / math.log(self.gamma))


def query_number(stage: int, factor: float, power: float) -> int:
    """Return the number of queries, ``⌈factor log(stage)^power⌉``. [Mauduit2025, Sec. 4.1]."""
    return math.ceil(factor * math.pow(math.log(stage), power))


def spread_places(
    belief: Belief, places: IntArray, number: int, rng: np.random.Generator
) -> IntArray:
    """Draw Q weakly correlated places from a Q-DPP, and sort them. [Burt2020, Algorithm 1].

    The kernel is the prior covariance, averaged over the hyperparameter candidates. If Q = `number`
    is at least m, the function returns all `places` (m,).
    """
    if number >= len(places):
        return np.sort(places)
    average = np.where(belief.weights > 1e-9, belief.weights, 0.0)
    variance = average @ belief.covariance.variance(places)
    scale = 1.0 / float(variance.max())
    weights = average * scale

    def entries(rows: IntArray, columns: IntArray) -> FloatArray:
        covariance = belief.covariance.between(places[rows], places[columns])
        same = np.equal.outer(rows, columns)
        return np.asarray(np.einsum("l,lrc->rc", weights, covariance) + _JITTER * same)

    return np.asarray(places[draw_kdpp(entries, variance * scale + _JITTER, number, rng)])


def sparq_beta(information: float, delta: float, norm: float) -> float:
    r"""Return the confidence width β_t of SparQ-GP-UCB [standard deviations].

    .. math:: \beta_t = \sqrt{2 \log \frac{2 |\Sigma + K|^{1/2}}{\delta |\Sigma|^{1/2}}} + \|f\|_k

    [Mauduit2025, Theorem 3.1]

    Args:
        information: ``½ log |I + Σ⁻¹ K|``, where K is the covariance of the field at the places of
            the readings, and Σ the covariance of their noise [nat].
        delta: probability δ with which the confidence bounds may fail.
        norm: upper bound on the RKHS norm ‖f‖_k of the field.
    """
    return math.sqrt(2.0 * (math.log(2.0 / delta) + information)) + norm


@dataclass(frozen=True)
class SparqGpUcb(Stepwise, Bandit):
    """As gp_ucb, with recent readings and with fresh answers of an expert.

    A reading of age a in steps has the noise variance ``σ² (a² + 1)``. Readings with a noise
    variance above ``σ² log t`` are dropped. The newest reading is always kept. Before decision t,
    an expert is asked about ``⌈c log^d t⌉`` places, which are drawn from a Q-DPP. The answers age
    in the same way as readings.
    """

    delta: float = param(
        0.05, help="probability that the confidence bounds fail", above=0.0, high=0.999999
    )
    norm: float = param(1.0, help="bound on the norm ‖f‖_k of the field about its mean", low=0.0)
    scale: float = param(
        1.0, help="divisor of β_t². The theory needs 1; 5 does well in experiments", above=0.0
    )
    query_factor: float = param(
        6.0,
        help="factor c in the number ⌈c log^d t⌉ of places that an expert is asked about",
        low=0.0,
    )

    def drift(self) -> DriftConfig:
        """Return the drift model that raises the noise of old readings and drops the oldest."""
        return DriftConfig(kind="injection", doubling=self.step, discard_step=self.step)

    def scores(self, view: View, belief: Belief, rng: np.random.Generator) -> FloatArray:
        """Return ``μ + β_t σ`` [unit of the readings]."""
        information = float(belief.weights @ belief.information)
        width = sparq_beta(information, self.delta, self.norm) / math.sqrt(self.scale)
        return view.mean + width * view.std
