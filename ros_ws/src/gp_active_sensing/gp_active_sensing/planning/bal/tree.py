"""The search tree of ⟨α,ε⟩-BAL: states, their bounds, expansion and backup."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gp_active_sensing.planning.bal.bounds import chain_rule
from gp_active_sensing.planning.bal.discretise import Successors, by_cells, by_draws
from gp_active_sensing.planning.bal.sequences import Leaves, Sequence
from gp_active_sensing.planning.entropy import (
    discrete_entropy,
    gaussian_entropy,
    mixture_entropy,
)
from gp_active_sensing.types import FloatArray

__all__ = ["Expander", "State"]

_EXACT = 8
"""Candidates of a last stage whose mixture entropy is computed; the others are bounded."""


@dataclass
class State:
    """A state (n, z_D): visited places, sampled readings, and bounds on its value.

    Args:
        sequence: the visited places.
        mean: (L, m) posterior means of ``sequence.locations``.
        weights: (L,) belief.
        path: (candidate, branch, …) choices since the root: the key of its random draws.
        lower, upper: bounds on the state's value [nat].
        expanded: all successors have bounds (at the last stage: the value is exact).
    """

    sequence: Sequence
    mean: FloatArray
    weights: FloatArray
    path: tuple[int, ...]
    lower: float
    upper: float
    expanded: bool = False
    successors: Successors | None = None
    branch_lower: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    branch_upper: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    q_lower: FloatArray = field(default_factory=lambda: np.zeros(0))
    q_upper: FloatArray = field(default_factory=lambda: np.zeros(0))
    children: dict[tuple[int, int], State] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """``upper - lower`` [nat]."""
        return self.upper - self.lower


class Expander:
    """Expands states and backs bounds up; knows the discretisation.

    Args:
        samples: branches per candidate, S.
        noise: (L,) noise variances.
        reference: (L,) reference entropies.
        draws: None for cells; else (key, τ, centre) of the published truncated sampling.
    """

    def __init__(
        self,
        samples: int,
        noise: FloatArray,
        reference: FloatArray,
        draws: tuple[int, float, float] | None = None,
    ) -> None:
        self.samples = samples
        self.noise = noise
        self.reference = reference
        self.draws = draws
        self.expanded = 0

    def root(self, sequence: Sequence, mean: FloatArray, weights: FloatArray) -> State:
        """Return the root state with its initial bounds."""
        lower, upper = self._initial(sequence, weights[None])
        return State(sequence, mean, weights, (), float(lower[0]), float(upper[0]))

    # -- expansion -----------------------------------------------------------------------------

    def expand(self, state: State) -> None:
        """Give every successor of a state its initial bounds, and back the state up."""
        sequence = state.sequence
        sequence.prepare()
        self.expanded += 1
        state.expanded = True
        if sequence.k == 1:
            values = self._last(state)
            state.q_lower = state.q_upper = values
        else:
            found = self._discretise(state)
            low, up = self._bounds(state, found)
            state.successors, state.branch_lower, state.branch_upper = found, low, up
            state.q_lower = found.reward + (found.probability * low).sum(axis=1)
            state.q_upper = found.reward + (found.probability * up).sum(axis=1)
        self._take(state)

    def _discretise(self, state: State) -> Successors:
        sequence = state.sequence
        mean = state.mean[:, sequence.candidates]
        if self.draws is None:
            return by_cells(state.weights, mean, sequence.variance, sequence.entropy, self.samples)
        return self._draw(state.weights, mean, sequence.variance, state.mean, state.path)

    def _draw(
        self,
        weights: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        region_mean: FloatArray,
        path: tuple[int, ...],
    ) -> Successors:
        if self.draws is None:  # pragma: no cover - only called when drawing
            msg = "no draws configured"
            raise AssertionError(msg)
        key, tau, centre = self.draws
        # τ̂ = max(|μ̌ - τ|, |μ̂ + τ|) is symmetric about zero: readings are centred first.
        low, high = region_mean.min() - centre, region_mean.max() - centre
        tau_hat = max(abs(low - tau), abs(high + tau))
        rng = np.random.default_rng([key, *path])
        reference = float(weights @ self.reference)
        limit = (centre - tau_hat, centre + tau_hat)
        return by_draws(weights, mean, variance, reference, self.samples, rng, limit)

    def _last(self, state: State) -> FloatArray:
        """Return the value of each candidate at the last stage, exact (or as drawn)."""
        sequence = state.sequence
        mean = state.mean[:, sequence.candidates]
        if self.draws is not None:
            return self._draw(state.weights, mean, sequence.variance, state.mean, state.path).reward
        reference = state.weights @ self.reference
        return mixture_entropy(state.weights, mean.T, sequence.variance.T) - reference

    def _bounds(self, state: State, found: Successors) -> tuple[FloatArray, FloatArray]:
        """Return the initial bounds (A, S) of all successors."""
        sequence = state.sequence
        if sequence.k == 2 and self.draws is None:
            leaves = sequence.leaves(_EXACT)
            if leaves is not None:
                values = self._leaf_values(state, found, leaves)
                return values, values
        A = len(sequence.candidates)
        low, up = np.empty((A, self.samples)), np.empty((A, self.samples))
        for a in range(A):
            if a % 16 == 15:
                sequence.problem.check()
            low[a], up[a] = self._successor_bounds(state, found, a)
        return low, up

    def _leaf_values(self, state: State, found: Successors, leaves: Leaves) -> FloatArray:
        """(A, S) values of the last stages after every branch, in one integration."""
        owner, where = leaves.owner, leaves.where
        sequence = state.sequence
        surprise = found.values.T[:, None, :] - state.mean[:, sequence.candidates]
        mean = state.mean[:, where] + sequence.gain[:, owner, where] * surprise[:, :, owner]
        weights = found.weights[owner].swapaxes(0, 1)
        entropy = mixture_entropy(weights, mean.swapaxes(1, 2), leaves.variance.T)
        return np.asarray(
            np.maximum.reduceat(entropy - weights @ self.reference, leaves.starts, axis=1).T
        )

    def _successor_bounds(
        self, state: State, found: Successors, a: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the initial bounds (S,) of the successors at candidate `a`."""
        child = state.sequence.child(a)
        weights = found.weights[a]
        if child.k > 1 or not len(child.candidates):
            return self._initial(child, weights)
        means = self.successor_mean(state, found, a)
        variance = state.sequence.child_variance(a) + self.noise[:, None]
        if self.draws is not None:
            values = np.array(
                [
                    self._draw(
                        weights[i],
                        means[i][:, child.candidates],
                        variance,
                        means[i],
                        (*state.path, a, i),
                    ).reward.max()
                    for i in range(self.samples)
                ]
            )
            return values, values
        return self._last_stage(weights, means[:, :, child.candidates], variance)

    def successor_mean(self, state: State, found: Successors, a: int) -> FloatArray:
        """(S, L, m') posterior means of the child's places in each branch at candidate `a`."""
        sequence = state.sequence
        kept = sequence.kept[a]
        surprise = found.values[a][:, None] - state.mean[:, sequence.candidates[a]]
        gain = sequence.gain[:, a, :][:, kept]
        return np.asarray(state.mean[None, :, kept] + surprise[:, :, None] * gain[None])

    def _last_stage(
        self, weights: FloatArray, mean: FloatArray, variance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds on ``max_x H[Z_x]`` for S states: exact when there are few candidates.

        Args:
            weights: (S, L).
            mean: (S, L, A).
            variance: (L, A), noise included.
        """
        entropy = gaussian_entropy(variance) - self.reference[:, None]
        A = mean.shape[2]
        if A <= _EXACT:
            value = self._mixtures(weights, mean, variance).max(axis=1)
            return value, value
        # H of a mixture is at most that of a Gaussian with its variance, and at most H(λ) more
        # than the expected entropy: only the candidates largest by that are integrated.
        mixture_mean = np.einsum("sl,sla->sa", weights, mean)
        spread = np.einsum("sl,sla->sa", weights, (mean - mixture_mean[:, None, :]) ** 2)
        moment = gaussian_entropy(weights @ variance + spread)
        moment -= (weights @ self.reference)[:, None]
        chain = weights @ entropy + discrete_entropy(weights)[:, None]
        upper = np.minimum(moment, chain)
        order = np.argsort(-upper, axis=1, kind="stable")[:, : _EXACT + 1]
        rows = np.arange(len(weights))[:, None]
        chosen, beyond = order[:, :_EXACT], upper[rows[:, 0], order[:, _EXACT]]
        picked_mean = mean[
            rows[:, :, None], np.arange(mean.shape[1])[None, :, None], chosen[:, None, :]
        ]
        picked_variance = np.moveaxis(variance[:, chosen], 0, 1)
        exact = self._mixtures(weights, picked_mean, picked_variance).max(axis=1)
        lower = np.maximum(exact, (weights @ entropy).max(axis=1))
        return lower, np.maximum(lower, beyond)

    def _mixtures(self, weights: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """(S, A) mixture entropies less their reference, from mean and variance (S, L, A)."""
        variance = np.broadcast_to(variance, mean.shape)
        value = mixture_entropy(
            weights[:, None, :], np.swapaxes(mean, 1, 2), np.swapaxes(variance, 1, 2)
        )
        return value - (weights @ self.reference)[:, None]

    def _initial(self, sequence: Sequence, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Chain-rule bounds for beliefs (S, L): ``max_A Σ b H_A ≤ V ≤ H(b) + Σ b max_A H_A``."""
        if not len(sequence.candidates):  # a dead end: no reading to come, nothing to bound
            return np.zeros(len(weights)), np.zeros(len(weights))
        fixed, best = chain_rule(sequence)
        lower = (weights @ fixed.T).max(axis=1)
        # With one λ left both are the same number; rounding must not put them out of order.
        return lower, np.maximum(lower, discrete_entropy(weights) + weights @ best)

    # -- navigation and backup -----------------------------------------------------------------

    def successor(self, state: State, a: int, i: int) -> State:
        """Return the state after reading branch `i` at candidate `a`."""
        existing = state.children.get((a, i))
        if existing is not None:
            return existing
        if state.successors is None:
            msg = "the state has no successors before it is expanded"
            raise ValueError(msg)
        mean = self.successor_mean(state, state.successors, a)[i]
        made = State(
            state.sequence.child(a),
            mean,
            state.successors.weights[a, i],
            (*state.path, a, i),
            float(state.branch_lower[a, i]),
            float(state.branch_upper[a, i]),
        )
        state.children[(a, i)] = made
        return made

    def back_up(self, line: list[State]) -> None:
        """Pass bounds from the last state of a root-to-leaf line up to the root. [Eq. 14]."""
        for parent, child in zip(line[-2::-1], line[:0:-1], strict=True):
            found = parent.successors
            if found is None:
                continue
            a, i = child.path[-2], child.path[-1]
            parent.branch_lower[a, i] = child.lower
            parent.branch_upper[a, i] = child.upper
            parent.q_lower[a] = found.reward[a] + found.probability[a] @ parent.branch_lower[a]
            parent.q_upper[a] = found.reward[a] + found.probability[a] @ parent.branch_upper[a]
            self._take(parent)

    def _take(self, state: State) -> None:
        lower, upper = float(state.q_lower.max()), float(state.q_upper.max())
        if self.draws is None:
            # Sound for cells: both the old and the new bounds hold for the tree's own value.
            # They meet within rounding; then the upper one gives way.
            state.lower = max(state.lower, lower)
            state.upper = max(state.lower, min(state.upper, upper))
        else:
            state.lower, state.upper = lower, upper
