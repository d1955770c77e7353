"""What S random draws per action guarantee, and how many a guarantee takes. [Hoang2014, Sec. 3.3].

For Experiment 1 of the paper (100 places, 7 length-scales, σ_o/σ_n = 40) and two stages, ten draws
promise nothing, and a loss of at most 1 nat takes six thousand million:

>>> from gp_active_sensing.planning.bal.sample_size import Planning, guarantee, samples_needed
>>> line = Planning(horizon=2, places=100, candidates=7, noise_ratio=40.0)
>>> print(guarantee(line, samples=10))  # doctest: +NORMALIZE_WHITESPACE
S = 10 draws per action: vacuous. The bound on the expected loss is 127 nat, and no policy can lose
more than 9.32 nat.
>>> needed = samples_needed(line, epsilon=1.0)
>>> print(f"{needed.samples:.1e}", needed.vacuous)
6.2e+09 False

The theory is for the published draws (`discretisation: draws`) and a horizon as long as the budget.
Cells have no sampling error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

__all__ = [
    "Planning",
    "SampleSize",
    "guarantee",
    "samples_needed",
]

_STEPS = 200
"""Halvings of an interval when a bound is solved for one of its terms."""


@dataclass(frozen=True)
class Planning:
    """What the guarantee depends on besides S.

    Args:
        horizon: stages N.
        places: size of the map |X|.
        candidates: size of Λ.
        noise_ratio: ``σ_o/σ_n``, the largest standard deviation of a reading over the least of its
            noise; above 1.
        kappa: κ of Lemma 2, ``1 + 2 max |σ_xu|D,λ| / σ_uu|D,λ``. 3 holds for a stationary
            covariance before the first reading; it may be larger later, and 1 is enough where
            covariances are diagonally dominant (Remark 3).
        tau: truncation τ in noise deviations σ_n; None = ``√log(1/γ)``, the paper's order of
            magnitude with a constant of 1, which is very little.
        summand: range T of the summand, when it has been measured (`summand.measured_range`);
            None = Lemma 2 with a constant of 1.

    Raises:
        ValueError: a number out of its range.
    """

    horizon: int
    places: int
    candidates: int
    noise_ratio: float
    kappa: float = 3.0
    tau: float | None = None
    summand: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("horizon", 1), ("places", 1), ("candidates", 1), ("kappa", 1.0)):
            value = getattr(self, name)
            if not least <= value < math.inf:
                msg = f"{name} must be {least} or more, got {value!r}"
                raise ValueError(msg)
        if not 1.0 < self.noise_ratio < math.inf:
            msg = f"noise_ratio must be above 1 (σ_o/σ_n), got {self.noise_ratio!r}"
            raise ValueError(msg)
        for name in ("tau", "summand"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value < math.inf:
                msg = f"{name} must be zero or more, got {value!r}"
                raise ValueError(msg)

    @property
    def most(self) -> float:
        """``N log(σ_o/σ_n) + log L`` [nat]: more than that no policy can lose."""
        return self.horizon * math.log(self.noise_ratio) + math.log(self.candidates)

    def truncation(self, gamma: float) -> float:
        """Return τ in noise deviations, for an error γ [nat] of a value."""
        if self.tau is not None:
            return self.tau
        return math.sqrt(max(-math.log(gamma), 0.0))

    def summand_range(self, gamma: float) -> float:
        r"""Return T [nat].

        .. math:: T = N^2 \kappa^{2N} \tau^2/\sigma_n^2 + N \log(\sigma_o/\sigma_n) + \log L
        """
        if self.summand is not None:
            return self.summand
        N = self.horizon
        spread = (N * self.kappa**N * self.truncation(gamma)) ** 2
        return spread + self.most


@dataclass(frozen=True)
class SampleSize:
    """A number of draws and what it guarantees; `str` says it in plain words.

    Args:
        samples: draws per action S.
        epsilon: ε [nat], ``4 N² γ``.
        gamma: error γ of a stage [nat].
        delta: probability δ that some error is larger.
        loss: bound on the expected loss of the policy, ``2 N² γ + δ N (N log(σ_o/σ_n) + log L)``
            [nat]; ε where δ is that of Theorem 2.
        most: ``N log(σ_o/σ_n) + log L`` [nat], which no policy can exceed.
        tau: truncation, in noise deviations.
        summand: range T [nat].
        horizon: stages N.
    """

    samples: int
    epsilon: float
    gamma: float
    delta: float
    loss: float
    most: float
    tau: float
    summand: float
    horizon: int

    @property
    def vacuous(self) -> bool:
        """The bound says no more than what holds for any policy."""
        return self.loss >= self.most

    def __str__(self) -> str:
        head = f"S = {_number(self.samples)} draws per action: "
        if self.vacuous:
            return (
                f"{head}vacuous. The bound on the expected loss is {self.loss:.3g} nat, and no "
                f"policy can lose more than {self.most:.3g} nat."
            )
        return (
            f"{head}the expected loss is at most {self.loss:.3g} nat of {self.most:.3g}. All "
            f"values are within Nγ = {self.horizon * self.gamma:.2g} nat of the true ones with a "
            f"probability of {1.0 - self.delta:.3g} (T = {self.summand:.3g} nat, "
            f"τ = {self.tau:.3g} σ_n)."
        )


def _number(count: int) -> str:
    return str(count) if count < 10**6 else f"{count:.2g}"


def samples_needed(planning: Planning, epsilon: float, delta: float | None = None) -> SampleSize:
    """Return the least S with ``2 (S|X|)^N exp(-2 S γ²/T²) ≤ δ``, γ = ε/(4N²).

    [Hoang2014, Lemma 3, Theorems 1 and 2]

    Args:
        planning: what it depends on.
        epsilon: ε [nat], above 0.
        delta: probability of a larger error; None = ``ε/(2N (N log(σ_o/σ_n) + log L))``, with
            which the expected loss is at most ε (Theorem 2).

    Raises:
        ValueError: ε or δ out of range.
    """
    if not 0.0 < epsilon < math.inf:
        msg = f"epsilon must be a finite number above 0, got {epsilon!r}"
        raise ValueError(msg)
    _check_delta(delta)
    needed = math.ceil(_least_samples(planning, epsilon, delta))
    return _size(planning, needed, epsilon, delta)


def guarantee(planning: Planning, samples: int, delta: float | None = None) -> SampleSize:
    """Return the least ε that S draws guarantee; the inverse of `samples_needed`.

    Args:
        planning: what it depends on.
        samples: draws per action S, 1 or more.
        delta: as for `samples_needed`.

    Raises:
        ValueError: S or δ out of range.
    """
    if not 1 <= samples < math.inf:
        msg = f"samples must be 1 or more, got {samples!r}"
        raise ValueError(msg)
    _check_delta(delta)
    # What is needed falls with ε.
    log_epsilon = _least(lambda x: samples - _least_samples(planning, math.exp(x), delta), 0.0)
    return _size(planning, samples, math.exp(log_epsilon), delta)


def _check_delta(delta: float | None) -> None:
    if delta is not None and not 0.0 < delta < 1.0:
        msg = f"delta must be a probability above 0 and below 1, got {delta!r}"
        raise ValueError(msg)


def _delta(planning: Planning, epsilon: float) -> float:
    # No probability exceeds 1; the loss is then beyond what any policy can lose.
    return min(epsilon / (2 * planning.horizon * planning.most), 1.0)


def _size(planning: Planning, samples: int, epsilon: float, delta: float | None) -> SampleSize:
    N = planning.horizon
    gamma = epsilon / (4 * N * N)
    failing = _delta(planning, epsilon) if delta is None else delta
    return SampleSize(
        samples,
        epsilon,
        gamma,
        failing,
        epsilon / 2 + failing * N * planning.most if delta is not None else epsilon,
        planning.most,
        planning.truncation(gamma),
        planning.summand_range(gamma),
        N,
    )


def _least_samples(planning: Planning, epsilon: float, delta: float | None) -> float:
    """Return the real number S from which on the bound of Lemma 3 is at most δ; 1 or more."""
    N = planning.horizon
    gamma = epsilon / (4 * N * N)
    scale = 0.5 * (planning.summand_range(gamma) / gamma) ** 2
    tail = math.log(2.0 / (_delta(planning, epsilon) if delta is None else delta))

    def excess(log_samples: float) -> float:
        wanted = scale * (N * (log_samples + math.log(planning.places)) + tail)
        return math.exp(log_samples) - wanted

    # Convex in S with its least value at `scale` N: from there on it grows.
    bottom = math.log(max(1.0, scale * N))
    if excess(bottom) >= 0.0 and excess(0.0) >= 0.0:
        return 1.0
    return math.exp(_least(excess, bottom))


def _least(grows: Callable[[float], float], start: float) -> float:
    """Return where a growing function becomes 0, within rounding, above or below `start`."""
    low = high = start
    width = 1.0
    while grows(low) > 0.0 and low > -600.0 and start == 0.0:
        low, width = low - width, 2.0 * width
    width = 1.0
    while grows(high) < 0.0:
        high, width = high + width, 2.0 * width
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if grows(middle) < 0.0:
            low = middle
        else:
            high = middle
    return high
