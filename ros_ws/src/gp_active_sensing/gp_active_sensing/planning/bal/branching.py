"""Branching methods of the tree search: cells of equal probability, or published random draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gp_active_sensing.planning.bal.bounds import chain_rule, children_chain_rule, initial_bounds
from gp_active_sensing.planning.bal.covariance_state import CovarianceState, LastVisits, Pairs
from gp_active_sensing.planning.bal.discretise import Successors, by_cells, by_draws
from gp_active_sensing.planning.bal.state_block import StateBlock
from gp_active_sensing.planning.entropy import (
    Bracket,
    discrete_entropy,
    entropy_between,
    gaussian_entropy,
    mixture_entropy,
)
from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.ties import RELATIVE

_CHUNK = 1 << 17
"""Largest number of entries of a temporary array that fits into the processor's cache."""
_LARGE_CHUNK = 2_000_000
"""Largest number of entries of a temporary array."""
_MEDIANS = 1e-3
"""Margin that is added to the upper bound for two readings [nat]. Without it, a value may exceed
the bound, because the reading of a cell is its median. The margin is four times the largest excess
in `tests/reference/test_bounds_random.py`."""


@dataclass(frozen=True, eq=False)
class EqualProbabilityCells:
    """Branching into S = `samples` cells of equal probability.

    The entropy of the last reading is exact. `reference` (L,) contains the entropies of the noise
    [nat]. `bounds` is the configuration key of `Bal` with this name.
    """

    samples: int
    reference: FloatArray
    bounds: str = "tight"
    sound = True
    """True: the bounds hold for the value of the tree. A new bound replaces only a looser one."""

    def root_bounds(self, sequence: CovarianceState, weights: FloatArray) -> tuple[float, float]:
        """Return a lower and an upper bound on the root's value [nat]; `weights` is (L,)."""
        return _chain_rule_root(sequence, weights)

    def discretise(self, block: StateBlock) -> Successors:
        """Return the branches at each candidate place."""
        sequence = block.sequence
        mean = block.mean[:, :, sequence.candidates]
        return by_cells(block.weights, mean, sequence.variance, sequence.entropy, self.samples)

    def last(self, block: StateBlock) -> FloatArray:
        """Return the values (r, A) of the candidate places when one reading remains [nat]."""
        sequence, weights = block.sequence, block.weights
        mean = block.mean[:, :, sequence.candidates]
        entropy = mixture_entropy(weights[:, None], mean.swapaxes(1, 2), sequence.variance.T)
        return np.asarray(entropy - (weights @ self.reference)[:, None])

    def branch_bounds(self, block: StateBlock, found: Successors) -> tuple[FloatArray, FloatArray]:
        """Return bounds (r, A, S) on the values of the states after each branch [nat].

        If one reading remains and there are few candidates, both bounds equal the exact value.
        """
        sequence = block.sequence
        if sequence.k == 2 and (leaves := sequence.leaves) is not None:
            values = self._leaf_values(block, found, leaves)
            return values, values
        if sequence.k == 2 and self.bounds != "chain":
            return last_stage_bounds(block, found, self.reference)
        lower, upper = _chain_rule_bounds(block, found)
        if sequence.k == 3 and self.bounds != "chain" and (pairs := sequence.pairs) is not None:
            upper = np.maximum(lower, np.minimum(upper, two_stage_bounds(block, found, pairs)))
        return lower, upper

    def _leaf_values(self, block: StateBlock, found: Successors, leaves: LastVisits) -> FloatArray:
        """Return the values (r, A, S) of the states after each branch if one reading remains [nat].

        In a block below the root, some candidate places cannot be the best choice of their state.
        They get upper bounds instead.
        """
        r, A, S = found.probability.shape
        X, L = len(leaves.where), len(self.reference)
        out = np.empty((r, A, S))
        step = max(1, _CHUNK // (S * X * L))
        for start in range(0, r, step):
            part = slice(start, start + step)
            values = np.ascontiguousarray(found.values[part].transpose(1, 2, 0))  # (A, S, r)
            weights = np.ascontiguousarray(found.weights[part].transpose(3, 1, 2, 0))
            mean = block.mean[part].transpose(1, 2, 0)  # (L, m, r)
            b, known = _leaf_brackets(block.sequence, leaves, mean, values, weights)
            of_noise = np.tensordot(self.reference, weights, axes=1)
            good = np.ones((A, values.shape[-1]), dtype=bool)
            if block.parent is not None:
                reward, p = found.reward[part].T, found.probability[part].transpose(1, 2, 0)
                ends = np.stack([known.lower, known.upper]).reshape(2, len(leaves.owner), -1)
                largest = np.maximum.reduceat(ends, leaves.starts, axis=1).reshape(2, *p.shape)
                low, high = reward + (p * (largest - of_noise)).sum(axis=2)
                good = high >= (low - RELATIVE * np.abs(low)).max(axis=0)
            best = _largest_entropy(
                leaves, b, known, np.broadcast_to(good[:, None], of_noise.shape)
            )
            out[part] = (best - of_noise).transpose(2, 0, 1)
        return out


def _leaf_brackets(
    sequence: CovarianceState,
    leaves: LastVisits,
    mean: FloatArray,
    values: FloatArray,
    weights: FloatArray,
) -> tuple[FloatArray, Bracket]:
    """Return weights (L, X S r), and bounds on the entropy of every leaf after every branch.

    Args:
        sequence: covariances before the branches.
        leaves: the X last visits.
        mean: (L, m, r) means before the branches.
        values: (A, S, r) readings of the branches.
        weights: (L, A, S, r) weights of the hyperparameter candidates after the branches.
    """
    owner, where, v = leaves.owner, leaves.where, leaves.variance
    L, A = weights.shape[:2]
    gain = sequence.gain[:, owner, where][:, :, None]  # (L, X, 1)
    moved = gain[..., None] * values[owner]  # (L, X, S, r)
    moved += (mean[:, where] - gain * mean[:, sequence.candidates[owner]])[:, :, None]
    b = weights[:, owner]
    moved -= (b * moved).sum(axis=0)
    square = moved * moved
    square *= b
    total = square.sum(axis=0).reshape(len(owner), -1)
    doubt = discrete_entropy(np.moveaxis(weights, 0, -1)).reshape(A, -1)
    lower = np.empty_like(total)
    entropy, rows = gaussian_entropy(v), weights.reshape(L, A, -1)
    for a, mine in enumerate(leaves.parts):
        lower[mine] = entropy[:, mine].T @ rows[:, a]
        total[mine] += v[:, mine].T @ rows[:, a]
    upper = np.maximum(lower, np.minimum(lower + doubt[owner], gaussian_entropy(total)))
    known = Bracket(moved.reshape(L, -1), total.ravel(), lower.ravel(), upper.ravel())
    return b.reshape(L, -1), known


def _largest_entropy(
    leaves: LastVisits, b: FloatArray, known: Bracket, good: BoolArray
) -> FloatArray:
    """Return the largest entropy (A, S, r) of a reading at a leaf, for each branch [nat].

    The function computes the entropy at the leaf with the largest upper bound. Then it computes the
    entropies at the leaves whose upper bound exceeds this result. Branches where `good` (A, S, r)
    is False get the largest upper bound instead. `b` (L, X S r) are the weights of the
    hyperparameter candidates at each of the X leaves after each branch.
    """
    wanted = good.reshape(len(good), -1)
    K = wanted.shape[1]
    upper = known.upper.reshape(-1, K).copy()
    first = np.array([p.start + upper[p].argmax(axis=0) for p in leaves.parts])
    first = first * K + np.arange(K)
    best = known.upper[first]
    first = first[wanted]
    best[wanted] = _integrated(leaves, b, known, first)
    upper.reshape(-1)[first] = -np.inf
    rest = np.flatnonzero(upper > best[leaves.owner])
    if rest.size:
        value = np.full(upper.shape, -np.inf)
        value.reshape(-1)[rest] = _integrated(leaves, b, known, rest)
        best = np.maximum(best, np.maximum.reduceat(value, leaves.starts, axis=0))
    return np.asarray(best.reshape(good.shape))


def _integrated(leaves: LastVisits, b: FloatArray, known: Bracket, which: IntArray) -> FloatArray:
    part = Bracket(known.centred[:, which], *(bound[which] for bound in known[1:]))
    leaf = which // (len(known.total) // len(leaves.owner))
    return entropy_between(b[:, which], leaves.variance[:, leaf], part)


@dataclass(frozen=True, eq=False)
class RandomDraws:
    """Branching by truncated random observations, as published. [Hoang2014, Eq. 8].

    Args:
        samples: number S of branches per candidate place.
        reference: (L,) entropies of the noise [nat].
        key: seed of the draws. The draws of a state depend only on `key` and the path to the state.
        tau: truncation τ [unit of the readings].
        centre: centre of the truncation interval [unit of the readings].
        loosening: factor c. Each chain-rule bound is moved outwards by c H(b), where H(b) is the
            entropy of the weights.
        most: largest entropy of a reading minus the entropy of its noise [nat]. The bounds on the
            value of k readings are then 0 and k times `most`. None = chain-rule bounds.
    """

    samples: int
    reference: FloatArray
    key: int
    tau: float
    centre: float
    loosening: float = 0.0
    most: float | None = None
    sound = False

    def root_bounds(self, sequence: CovarianceState, weights: FloatArray) -> tuple[float, float]:
        """Return a lower and an upper bound on the root's value [nat]; `weights` is (L,)."""
        if self.most is not None:
            return 0.0, sequence.k * self.most
        lower, upper = _chain_rule_root(sequence, weights)
        slack = self._slack(weights).item()
        return lower - slack, upper + slack

    def discretise(self, block: StateBlock) -> Successors:
        """Return the branches at each candidate place."""
        rows = [self._drawn(block, r) for r in range(len(block.row))]
        return Successors(*map(np.stack, zip(*rows, strict=True)))

    def last(self, block: StateBlock) -> FloatArray:
        """Return the drawn values (r, A) of the candidate places when one reading remains [nat]."""
        return np.stack([self._drawn(block, r).reward for r in range(len(block.row))])

    def branch_bounds(self, block: StateBlock, found: Successors) -> tuple[FloatArray, FloatArray]:
        """Return bounds (r, A, S) on the exact (not the drawn) values after each branch [nat]."""
        if self.most is not None:
            lower = np.zeros(found.probability.shape)
            return lower, lower + (block.sequence.k - 1) * self.most
        lower, upper = _chain_rule_bounds(block, found)
        slack = self._slack(found.weights)
        return lower - slack, upper + slack

    def _slack(self, weights: FloatArray) -> FloatArray:
        return np.asarray(self.loosening * discrete_entropy(weights))

    def _drawn(self, block: StateBlock, row: int) -> Successors:
        sequence, mean, weights = block.sequence, block.mean[row], block.weights[row]
        # τ̂ = max(|μ̌ - τ|, |μ̂ + τ|) is symmetric about zero, so readings are centred first.
        low, high = mean.min() - self.centre, mean.max() - self.centre
        tau_hat = max(abs(low - self.tau), abs(high + self.tau))
        return by_draws(
            weights,
            mean[:, sequence.candidates],
            sequence.variance,
            float(weights @ self.reference),
            self.samples,
            np.random.default_rng([self.key, *block.path(row)]),
            (self.centre - tau_hat, self.centre + tau_hat),
        )


Branching: TypeAlias = EqualProbabilityCells | RandomDraws
"""Class that divides possible readings into branches, and computes values of states."""


def _chain_rule_root(sequence: CovarianceState, weights: FloatArray) -> tuple[float, float]:
    fixed, best = chain_rule(sequence)
    lower, upper = initial_bounds(fixed[None], best[None], weights[None, None])
    return lower.item(), upper.item()


def _chain_rule_bounds(block: StateBlock, found: Successors) -> tuple[FloatArray, FloatArray]:
    fixed, best = children_chain_rule(block.sequence)
    return initial_bounds(fixed, best, found.weights)


def last_stage_bounds(
    block: StateBlock, found: Successors, reference: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return bounds (r, A, S) on the values after each branch when one reading remains [nat].

    The results are the maxima of the following lower and upper bounds over the places y that may be
    next. The entropy of the noise is subtracted from both bounds. b are the weights after the
    branch.

    .. math:: \sum_\lambda b(\lambda) H[Z_y | \lambda] \le H[Z_y] \le \min\Big(
        \sum_\lambda b(\lambda) H[Z_y | \lambda] + H(b),\
        \tfrac12 \log 2\pi e \operatorname{Var}[Z_y] \Big)

    The last bound holds because a Gaussian has the largest entropy of all densities of equal
    variance.
    """
    sequence, noise = block.sequence, block.sequence.problem.noise
    A, m = len(sequence.candidates), len(sequence.locations)
    S = found.probability.shape[2]
    lower, upper = np.empty(found.probability.shape), np.empty(found.probability.shape)
    step = max(1, _LARGE_CHUNK // (S * len(noise) * m))
    # Deviations from the mean over λ keep the squares below small.
    deviation = block.mean - (block.weights[:, None] @ block.mean)
    for start in range(0, A, step):
        sequence.problem.check()
        part = slice(start, min(start + step, A))
        latent = np.swapaxes(sequence.latent_after(part), 0, 1)  # (a, L, m)
        variance = latent + noise[:, None]
        entropy = np.swapaxes(sequence.problem.entropy(np.swapaxes(latent, 0, 1)), 0, 1)
        gain = np.swapaxes(sequence.gain[:, part], 0, 1)
        squared = gain * gain
        closed = ~sequence.allowed_after(part)[:, None]
        here = sequence.candidates[part]
        for row in range(len(block.row)):
            b = found.weights[row, part]  # (a, S, L)
            of_noise = (b @ reference)[..., None]
            expected = b @ entropy
            surprise = found.values[row, part][:, :, None] - block.mean[row][:, here].T[:, None]
            # Var = Σ b σ² + Σ b μ² - (Σ b μ)², with μ = deviation + gain · surprise in each branch.
            mean, weighted = deviation[row], b * surprise
            centre = b @ mean + weighted @ gain
            total = b @ (variance + mean * mean) + 2.0 * (weighted @ (gain * mean))
            total += (weighted * surprise) @ squared - centre * centre
            total = np.maximum(total, b @ variance)
            most = np.minimum(
                gaussian_entropy(total) - of_noise, expected + discrete_entropy(b)[..., None]
            )
            lower[row, part] = np.where(closed, -np.inf, expected).max(axis=-1)
            upper[row, part] = np.where(closed, -np.inf, most).max(axis=-1)
    # At a dead end no reading follows, so both bounds are 0.
    lower = np.where(np.isfinite(lower), lower, 0.0)
    return lower, np.maximum(lower, np.where(np.isfinite(upper), upper, 0.0))


def two_stage_bounds(block: StateBlock, found: Successors, pairs: Pairs) -> FloatArray:
    r"""Return upper bounds (r, A, S) on the value V after each branch when two readings remain.

    A policy observes x, and then chooses a place y ∈ Y, given the reading at x. Var is the variance
    of the mixture over λ. With Var[Z_y | x] = Var[Z_y] - Cov[Z_x, Z_y]² / Var[Z_x],

    .. math:: V \le \max_x \sum_\lambda b(\lambda) \big(H[Z_x | \lambda] + \max_y
        H[Z_y | Z_x, \lambda]\big) + J(x) + \sum_{y \in Y} J(y | x), \qquad
        J(\cdot) = \tfrac12 \log 2\pi e \operatorname{Var} - \sum_\lambda b(\lambda) H_\lambda

    J bounds the information of a reading about λ; see docs/theory.md.
    """
    sequence, move, visit = block.sequence, pairs.move, pairs.visit
    to_first = sequence.gain[:, move, pairs.first, None, None]
    to_second = sequence.gain[:, move[visit], pairs.second, None, None]
    log_variance, log_last = np.log(pairs.variance), np.log(pairs.last)
    r, A, S = found.probability.shape
    out = np.empty((r, A, S))
    step = max(1, _LARGE_CHUNK // (S * pairs.last.size))
    for start in range(0, r, step):
        sequence.problem.check()
        rows = slice(start, start + step)
        # With λ first and states last, sums run along contiguous memory.
        mean = np.ascontiguousarray(block.mean[rows].transpose(1, 2, 0))[:, :, None]
        weights = np.ascontiguousarray(found.weights[rows].transpose(3, 1, 2, 0))
        surprise = found.values[rows].transpose(1, 2, 0) - mean[:, sequence.candidates]
        b = weights[:, move]  # (L, G, S, r)
        one = to_first * surprise[:, move]
        one += mean[:, pairs.first]
        one -= (b * one).sum(axis=0)
        weighted = b * one
        alone = _mixed(pairs.variance, b) + (weighted * one).sum(axis=0)
        gained = 0.5 * (np.log(alone) - _mixed(log_variance, b))
        expected = _mixed(pairs.entropy, b)
        b = b[:, visit]  # (L, P, S, r)
        two = to_second * surprise[:, move[visit]]
        two += mean[:, pairs.second]
        two -= (b * two).sum(axis=0)
        shared = _mixed(pairs.shared, b) + (weighted[:, visit] * two).sum(axis=0)
        two *= two
        two += pairs.other[:, :, None, None]
        two *= b
        then = two.sum(axis=0) - shared * shared / alone[visit]
        then = np.maximum(then, _mixed(pairs.last, b))
        more = 0.5 * (np.log(then) - _mixed(log_last, b))
        gained += np.add.reduceat(more, pairs.starts, axis=0)
        doubt = discrete_entropy(found.weights[rows]).transpose(1, 2, 0)[move]
        value = np.maximum.reduceat(expected + np.minimum(gained, doubt), pairs.moves, axis=0)
        out[rows] = value.transpose(2, 0, 1) + _MEDIANS
    return out


def _mixed(numbers: FloatArray, b: FloatArray) -> FloatArray:
    """Return the mean over λ of `numbers` (L, P) with weights `b` (L, P, S, r)."""
    return np.asarray(np.einsum("lp,lpsr->psr", numbers, b))
