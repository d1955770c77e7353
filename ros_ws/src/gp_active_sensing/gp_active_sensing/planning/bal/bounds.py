"""Chain-rule bounds on the value of a state, per λ. (docs/theory.md, "Chain-rule bounds")."""

from __future__ import annotations

import numpy as np

from gp_active_sensing.planning.bal.sequences import Sequence
from gp_active_sensing.types import FloatArray

__all__ = ["chain_rule"]


def chain_rule(sequence: Sequence) -> tuple[FloatArray, FloatArray]:
    r"""Return entropies of feasible sets of visits and the most any set can have.

    .. math:: \max_A \sum_\lambda b(\lambda) H[Z_A | \lambda] \le V
        \le H(b) + \sum_\lambda b(\lambda) \max_A H[Z_A | \lambda]

    Entropies are less those of the noise, so none is negative. When there are few visiting
    sequences all are enumerated, and `best` is exact; else the sets are greedy and `best` is the
    sum of the largest marginals. Computed once for each sequence.

    Returns:
        fixed: (G, L) joint entropy ``H[Z_A | λ]`` of G feasible visiting sequences.
        best: (L,) upper bound on ``max_A H[Z_A | λ]`` over all feasible A of k places.
    """
    if sequence.bounds is None:
        sequence.bounds = _chain_rule(sequence)
    return sequence.bounds


def _chain_rule(sequence: Sequence) -> tuple[FloatArray, FloatArray]:
    if not len(sequence.candidates):
        L = len(sequence.problem.noise)
        return np.zeros((1, L)), np.zeros(L)
    if sequence.sequences is None:
        return _greedy(sequence)
    sequence.prepare()
    if sequence.k == 1:
        fixed = sequence.entropy.T
    else:
        parts = [
            sequence.entropy[:, a] + chain_rule(sequence.child(a))[0]
            for a in range(len(sequence.candidates))
        ]
        fixed = np.concatenate(parts)
    return fixed, fixed.max(axis=0)


def _greedy(sequence: Sequence) -> tuple[FloatArray, FloatArray]:
    """Greedy under each λ and on their average; `best` from the k largest marginals."""
    problem = sequence.problem
    problem.check()
    C, L = sequence.covariance, len(problem.noise)
    diagonal = np.maximum(np.diagonal(C, axis1=1, axis2=2), 0.0)
    best = np.sort(problem.entropy(diagonal), axis=1)[:, -sequence.k :].sum(axis=1)
    focus = np.vstack([np.eye(L), np.full((1, L), 1.0 / L)])
    return np.stack([_rollout(sequence, C, diagonal, weights) for weights in focus]), best


def _rollout(
    sequence: Sequence, C: FloatArray, diagonal: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return (L,) joint entropies of the greedy sequence for a weighting of Λ."""
    problem, total = sequence.problem, np.zeros(len(weights))
    variance = diagonal.copy()
    downdates: list[FloatArray] = []
    candidates, visited = sequence.candidates, sequence.visited
    for step in range(sequence.k):
        if not len(candidates):
            break
        entropy = problem.entropy(variance[:, candidates])
        pick = int(candidates[int(np.argmax(weights @ entropy))])
        noisy = variance[:, pick] + problem.noise
        total += problem.entropy(variance[:, pick])
        if step == sequence.k - 1:
            break
        column = C[:, :, pick].copy()
        for d in downdates:
            column -= d * d[:, pick, None]
        d = column / np.sqrt(noisy)[:, None]
        downdates.append(d)
        variance = np.maximum(variance - d * d, 0.0)
        x = int(sequence.locations[pick])
        visited = visited | {x}
        if problem.topology.free:
            candidates = candidates[candidates != pick]
        else:
            candidates = np.searchsorted(sequence.locations, problem.candidates(x, visited))
    return total
