"""Chain-rule bounds on the value of a state (docs/theory.md, "Chain-rule bounds")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gp_active_sensing.planning.bal.covariance_state import CovarianceState, DecisionProblem
from gp_active_sensing.planning.entropy import discrete_entropy, sum_of_largest
from gp_active_sensing.types import BoolArray, FloatArray, IntArray
from gp_active_sensing.util.ties import NAT, first_best

_KEPT = 24
"""Approximate number of visiting sequences that are kept for the lower bound on a value."""
_CHUNK = 2_000_000
"""Largest number of entries of a temporary array."""


def chain_rule(sequence: CovarianceState) -> tuple[FloatArray, FloatArray]:
    r"""Return the entropies in the following bounds on the value V of a state.

    .. math:: \max_A \sum_\lambda b(\lambda) H[Z_A | \lambda] \le V
        \le H(b) + \sum_\lambda b(\lambda) \max_A H[Z_A | \lambda]

    A is a set of places that the remaining readings can observe. The entropy of the noise is
    subtracted, so no entropy is negative. If there are few visiting sequences, the function
    enumerates all of them, and `best` is exact. Otherwise the sequences are greedy, and `best`
    follows from submodularity. The result is stored in `sequence`.

    Returns:
        fixed: (G, L) joint entropies ``H[Z_A | λ]`` of G feasible visiting sequences.
        best: (L,) upper bounds on ``max_A H[Z_A | λ]`` over all feasible A.
    """
    if sequence.bounds is None:
        sequence.bounds = _chain_rule(sequence)
    return sequence.bounds


def children_chain_rule(sequence: CovarianceState) -> tuple[FloatArray, FloatArray]:
    """Return `fixed` (A, G, L) and `best` (A, L) of `chain_rule` after each candidate place."""
    if sequence.children_bounds is None:
        if sequence.problem.free and sequence.sequences is None:
            sequence.children_bounds = _free_children(sequence)
        else:
            found = [chain_rule(sequence.child(a)) for a in range(len(sequence.candidates))]
            most = max(len(fixed) for fixed, _ in found)
            # Shorter lists are filled up by repeating their last sequence.
            fixed = [f[np.minimum(np.arange(most), len(f) - 1)] for f, _ in found]
            sequence.children_bounds = np.stack(fixed), np.stack([best for _, best in found])
    return sequence.children_bounds


def initial_bounds(
    fixed: FloatArray, best: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return lower bounds ``max_g Σ b H_g`` and upper bounds ``H(b) + Σ b max_g H_g`` [nat].

    Both are arrays (…, A, S), with one bound for each branch. g is a visiting sequence.

    Args:
        fixed: (A, G, L) entropies H_g of visiting sequences; see `children_chain_rule`.
        best: (A, L) upper bounds on the largest H_g.
        weights: (…, A, S, L) weights b of the hyperparameter candidates.
    """
    A, S, L = weights.shape[-3:]
    # All sums over λ in one product for each candidate, (A, G + 1, … S).
    flat = weights.reshape(-1, A, S, L).transpose(1, 3, 0, 2).reshape(A, L, -1)
    expected = np.concatenate([fixed, best[:, None]], axis=1) @ flat
    lower, most = (
        part.reshape(A, -1, S).swapaxes(0, 1).reshape(weights.shape[:-1])
        for part in (expected[:, :-1].max(axis=1), expected[:, -1])
    )
    upper = discrete_entropy(weights) + most
    # With one λ both bounds are equal, and rounding must not exchange them.
    return lower, np.maximum(lower, upper)


def _chain_rule(sequence: CovarianceState) -> tuple[FloatArray, FloatArray]:
    if not len(sequence.candidates):
        L = len(sequence.problem.noise)
        return np.zeros((1, L)), np.zeros(L)
    if sequence.sequences is None:
        return _greedy(sequence)
    sequence.prepare()
    if sequence.k == 1:
        fixed = sequence.entropy.T
        return _thinned(fixed), fixed.max(axis=0)
    if sequence.k == 2 and (leaves := sequence.leaves) is not None:
        fixed = (sequence.entropy[:, leaves.owner] + leaves.entropy).T
        return _thinned(fixed), fixed.max(axis=0)
    found = [chain_rule(sequence.child(a)) for a in range(len(sequence.candidates))]
    here = sequence.entropy.T
    fixed = np.concatenate([h + f for h, (f, _) in zip(here, found, strict=True)])
    return _thinned(fixed), np.max([h + b for h, (_, b) in zip(here, found, strict=True)], axis=0)


def _thinned(fixed: FloatArray) -> FloatArray:
    """Return about `_KEPT` sequences: the best for each λ, for pairs of λ, and on average."""
    if len(fixed) <= _KEPT:
        return fixed
    L = fixed.shape[1]
    pairs = fixed[:, : _KEPT // L, None] + fixed[:, None]
    kept = {*fixed.argmax(axis=0).tolist(), *pairs.argmax(axis=0).ravel().tolist()}
    kept.update(np.argsort(-fixed.mean(axis=1), kind="stable")[: _KEPT // 2].tolist())
    return np.asarray(fixed[sorted(kept)])


def _greedy(sequence: CovarianceState) -> tuple[FloatArray, FloatArray]:
    """Return the result of `chain_rule` from greedy sequences.

    One sequence is greedy for each λ, and another one for the average over λ.
    """
    problem, C = sequence.problem, sequence.covariance
    m = C.shape[1]
    allowed = np.zeros((1, m), dtype=bool)
    allowed[:, sequence.candidates] = True
    walks = [(sequence.at, sequence.visited, sequence.left)] * (len(problem.noise) + 1)

    def follow(picks: IntArray, allowed: BoolArray) -> BoolArray:
        for w, pick in enumerate(picks):
            if problem.free:
                allowed[w, pick] = False
            elif allowed[w].any():
                x = int(sequence.locations[pick])
                walks[w] = (x, *problem.after(*walks[w], x))
                allowed[w] = np.isin(sequence.locations, problem.candidates(*walks[w]))
        return allowed

    variance = np.maximum(np.diagonal(C, axis1=1, axis2=2), 0.0)[:, None]
    fixed, best = _walks(
        problem, sequence.k, variance, lambda picks: C[:, picks, :], allowed, follow
    )
    return fixed[0], best[0]


def _free_children(sequence: CovarianceState) -> tuple[FloatArray, FloatArray]:
    """Return the result of `children_chain_rule` if every unvisited place may be next."""
    problem = sequence.problem
    sequence.prepare()
    if sequence.k == 2:
        return _free_last(sequence)
    C = sequence.covariance
    L, m = C.shape[0], C.shape[1]
    A, k = len(sequence.candidates), sequence.k - 1
    fixed, best = np.empty((A, L + 1, L)), np.empty((A, L))
    step = max(1, _CHUNK // (L * m * (L + 1)))
    for start in range(0, A, step):
        problem.check()
        part = np.arange(start, min(start + step, A))
        at = sequence.candidates[part]
        rows, gain = C[:, at, :], sequence.gain[:, part]
        allowed = np.ones((len(part), m), dtype=bool)
        allowed[np.arange(len(part)), at] = False

        def column(picks: IntArray, rows: FloatArray = rows, gain: FloatArray = gain) -> FloatArray:
            owner = np.repeat(np.arange(rows.shape[1]), len(picks) // rows.shape[1])
            return np.asarray(C[:, picks, :] - rows[:, owner, picks, None] * gain[:, owner])

        variance = sequence.latent_after(slice(start, start + len(part)))
        variance[:, np.arange(len(part)), at] = 0.0  # no second reading of a place
        fixed[part], best[part] = _walks(problem, k, variance, column, allowed, _all_others)
    return fixed, best


def _free_last(sequence: CovarianceState) -> tuple[FloatArray, FloatArray]:
    """Return the result of `_free_children` if one reading remains after each candidate place."""
    problem, A = sequence.problem, len(sequence.candidates)
    L = len(problem.noise)
    own = np.arange(L)
    fixed = np.empty((A, L + 1, L))
    step = max(1, _CHUNK // (L * len(sequence.locations)))
    for start in range(0, A, step):
        problem.check()
        part = slice(start, min(start + step, A))
        latent = sequence.latent_after(part)  # (L, a, m)
        every = np.arange(latent.shape[1])
        ratio = latent / problem.noise[:, None, None]
        ratio[:, every, sequence.candidates[part]] = -1.0  # no second reading of a place
        alone = first_best(ratio, floor=NAT)
        ratio += 1.0
        # The mean of logarithms is largest where the product is largest.
        together = first_best(ratio.prod(axis=0))
        picks = np.concatenate([alone, together[None]])  # (L + 1, a)
        picked = problem.entropy(latent[:, every, picks])  # (L, L + 1, a)
        fixed[part] = picked.transpose(2, 1, 0)
    return fixed, fixed[:, own, own]


def _all_others(picks: IntArray, allowed: BoolArray) -> BoolArray:
    allowed[np.arange(len(picks)), picks] = False
    return allowed


def _walks(
    problem: DecisionProblem,
    k: int,
    variance: FloatArray,
    column: Callable[[IntArray], FloatArray],
    allowed: BoolArray,
    follow: Callable[[IntArray, BoolArray], BoolArray],
) -> tuple[FloatArray, FloatArray]:
    r"""Return joint entropies of greedy sequences, and upper bounds on those of any k places [nat].

    From each of A start states there are L + 1 sequences. One is greedy for each λ, and the last
    one is greedy for the average over λ. For each λ, information is monotone and submodular. Every
    prefix G_j of a sequence thus gives the bound

    .. math:: \max_{|A| = k} H[Z_A] \le H[Z_{G_j}] + \sum_{\text{k largest}} H[Z_x | Z_{G_j}]

    over unvisited places x, with the entropy of the noise subtracted [Minoux1978]. The result for λ
    is the smallest of these bounds over all prefixes of the sequence that is greedy for λ.

    Args:
        problem: noise, and the check of the deadline.
        k: number of remaining readings.
        variance: (L, A, m) variances of the noise-free field in each start state.
        column: function that takes one chosen place for each sequence, (A (L+1),). It returns the
            covariances (L, A (L+1), m) of these places with all places in the start states.
        allowed: (A, m) mask of the places that a sequence may visit first.
        follow: function that returns the mask (A (L+1), m) of the places that may be next, given
            the chosen places and the present mask.

    Returns:
        total: (A, L + 1, L) joint entropies of the sequences for each λ.
        best: (A, L) smallest upper bound for each start state and each λ.
    """
    L, A, m = variance.shape
    W, own = L + 1, np.arange(L)
    focus = np.vstack([np.eye(L), np.full((1, L), 1.0 / L)])
    entropy = problem.entropy(variance)
    best = sum_of_largest(entropy, k).T
    score = np.where(allowed[:, None], focus @ entropy.swapaxes(0, 1), -np.inf)
    picks = first_best(score, floor=NAT)  # (A, W)
    alive = np.repeat(allowed.any(axis=1), W)
    begin = np.arange(A)[:, None]
    total = np.where(alive.reshape(A, W, 1), np.moveaxis(entropy[:, begin, picks], 0, 2), 0.0)
    if k == 1:
        return total, best
    picks, every = picks.ravel(), np.arange(A * W)
    variance, allowed = np.repeat(variance, W, axis=1), np.repeat(allowed, W, axis=0)
    total = total.reshape(A * W, L)
    downdates: list[FloatArray] = []
    for _ in range(k - 1):
        problem.check()
        d = column(picks)
        for earlier in downdates:
            d = d - earlier * earlier[:, every, picks, None]
        d = d / np.sqrt(variance[:, every, picks] + problem.noise[:, None])[:, :, None]
        d[:, ~alive] = 0.0
        # A downdate cannot exceed the variance. Where the variance is near zero, d is a rounding
        # error that further downdates would amplify.
        if problem.delicate:
            most = np.sqrt(variance)
            np.clip(d, -most, most, out=d)
        downdates.append(d)
        variance = np.maximum(variance - d * d, 0.0)
        variance[:, every[alive], picks[alive]] = 0.0  # no second reading of a place
        allowed = follow(picks, allowed)
        alive = alive & allowed.any(axis=1)
        entropy = problem.entropy(variance)
        # Select for each λ the sequence that is greedy for this λ.
        mine = entropy.reshape(L, A, W, m)[own, :, own]
        best = np.minimum(best, total.reshape(A, W, L)[:, own, own] + sum_of_largest(mine, k).T)
        if not alive.any():
            break
        score = np.einsum("wl,lawm->awm", focus, entropy.reshape(L, A, W, m), optimize=True)
        picks = first_best(np.where(allowed, score.reshape(A * W, m), -np.inf), floor=NAT)
        total += np.where(alive, entropy[:, every, picks], 0.0).T
    return total.reshape(A, W, L), best
