"""Bounds on what a state takes off the error of the map (docs/theory.md, "Map error")."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, eigh

from gp_active_sensing.planning.bal.disagreement import disagreement
from gp_active_sensing.planning.bal.map_covariance_state import MapCovarianceState
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.ties import NAT, first_best

__all__ = ["best_sets", "bounds_of", "children_best_sets"]

_KEPT = 8
"""About how many feasible sequences are kept for the lower bound."""
_CHUNK = 2_000_000
"""Numbers in the largest temporary array."""
_MOST_PLACES = 400
"""Places up to which the eigenvalues of the pencil are computed at the root,"""
_MOST_INSIDE = 100
"""and at any other state."""

Sets = list[tuple[int, ...]]


def best_sets(sequence: MapCovarianceState) -> tuple[FloatArray, Sets, FloatArray]:
    r"""Return what feasible sets of visits take off under each λ, and the most any set can.

    Where visiting sequences are few all are enumerated, and `best` is exact. A drop of the error
    is not submodular, so that where they are many `best` is that of the generalised eigenvalues
    (Ky Fan), of all pairs, or of the state before less what the visit took.

    Returns:
        fixed: (G, L) drops of G feasible visiting sequences.
        sets: G places each, by their numbers at the root; those visited before are among them.
        best: (L,) upper bound on the drop under λ over all feasible sets.
    """
    if sequence.map_bounds is None:
        sequence.map_bounds = _best_sets(sequence)
    return sequence.map_bounds


def children_best_sets(sequence: MapCovarianceState) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `best_sets` of the state after each candidate, with what is disagreed about then.

    Returns:
        fixed (A, G, L), their disagreements (A, G, L, L), and best (A, L).
    """
    if sequence.children_map_bounds is None:
        sequence.prepare()
        if sequence.problem.free and sequence.sequences is None:
            found = _free_children(sequence)
        else:
            found = [best_sets(sequence.child(a)) for a in range(len(sequence.candidates))]
        most = max(len(fixed) for fixed, _, _ in found)
        # Shorter lists are filled up by repeating their last sequence.
        filled = [np.minimum(np.arange(most), len(fixed) - 1) for fixed, _, _ in found]
        sets = [s[i] for (_, s, _), rows in zip(found, filled, strict=True) for i in rows]
        L = len(sequence.problem.noise)
        sequence.children_map_bounds = (
            np.stack([fixed[rows] for (fixed, _, _), rows in zip(found, filled, strict=True)]),
            sequence.of.disagreement.after(sets).reshape(len(found), most, L, L),
            np.stack([best for _, _, best in found]),
        )
    return sequence.children_map_bounds


def bounds_of(
    fixed: FloatArray,
    doubts: FloatArray,
    best: FloatArray,
    present: FloatArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    r"""Return bounds (…, A, S) on the values of states.

    .. math:: D(b) + \max_A \Big( \sum_\lambda b(\lambda) \, r_\lambda(A) - D_A(b) \Big) \le V
        \le D(b) + \sum_\lambda b(\lambda) \max_A r_\lambda(A)

    Args:
        fixed: (A, G, L) drops r of feasible sets after each candidate.
        doubts: (A, G, L, L) of D after them.
        best: (A, L) the most any set can take off.
        present: (A, L, L) of D now.
        weights: (…, A, S, L) beliefs.
    """
    now = disagreement(present, weights)
    upper = now + (weights @ best[..., None])[..., 0]
    lower = np.full_like(upper, -np.inf)
    for g in range(fixed.shape[1]):
        drop = (weights @ fixed[:, g, :, None])[..., 0]
        np.maximum(lower, drop - disagreement(doubts[:, g], weights), out=lower)
    lower += now
    # With one λ left both are the same number; rounding must not put them out of order.
    return lower, np.maximum(lower, upper)


def _best_sets(sequence: MapCovarianceState) -> tuple[FloatArray, Sets, FloatArray]:
    L = len(sequence.problem.noise)
    if not len(sequence.candidates):
        return np.zeros((1, L)), [sequence.read], np.zeros(L)
    sequence.prepare()
    if sequence.sequences is None:
        sequence.ceiling = _ceiling(sequence)
        return _greedy(sequence)
    numbers = sequence.numbers
    here = sequence.drop.T
    if sequence.k == 1:
        sets = [_with(sequence.read, x) for x in numbers[sequence.candidates].tolist()]
        return *_thinned(here, sets, sequence.of.weights), here.max(axis=0)
    if sequence.k == 2 and (leaves := sequence.leaves()) is not None:
        fixed = here[leaves.owner] + sequence.leaf_drops().T
        first, last = numbers[sequence.candidates[leaves.owner]], numbers[leaves.where]
        sets = [
            _with(_with(sequence.read, x), y)
            for x, y in zip(first.tolist(), last.tolist(), strict=True)
        ]
        return *_thinned(fixed, sets, sequence.of.weights), fixed.max(axis=0)
    found = [best_sets(sequence.child(a)) for a in range(len(sequence.candidates))]
    fixed = np.concatenate([h + f for h, (f, _, _) in zip(here, found, strict=True)])
    sets = [s for _, inner, _ in found for s in inner]
    best = np.max([h + b for h, (_, _, b) in zip(here, found, strict=True)], axis=0)
    return *_thinned(fixed, sets, sequence.of.weights), best


def _with(read: tuple[int, ...], x: int) -> tuple[int, ...]:
    return tuple(sorted((*read, x)))


def _thinned(fixed: FloatArray, sets: Sets, weights: FloatArray) -> tuple[FloatArray, Sets]:
    """Keep the best sets on average, and of the most probable λ: any subset is sound."""
    if len(fixed) <= _KEPT:
        return fixed, sets
    kept: dict[int, None] = {}
    for score in (fixed @ weights, *fixed.T[np.argsort(-weights, kind="stable")]):
        if len(kept) >= _KEPT:
            break
        most = _KEPT // 2 if not kept else 1
        kept.update(dict.fromkeys(np.argsort(-score, kind="stable")[:most].tolist()))
    rows = sorted(kept)
    return np.asarray(fixed[rows]), [sets[i] for i in rows]


def _ceiling(sequence: MapCovarianceState) -> FloatArray:
    """(L,) more than this no set of k places takes off, whatever the moves."""
    best: FloatArray = sequence.ceiling.copy()
    k = sequence.k
    if k == 1:
        return np.asarray(sequence.drop.max(axis=1))
    C, S = sequence.covariance, sequence.shared
    L, m = C.shape[0], C.shape[1]
    if k == 2 and sequence.problem.free:
        for part in _slices(len(sequence.candidates), L * m):
            after = sequence.drop_after(part)
            own = np.arange(after.shape[1])
            after[:, own, sequence.candidates[part]] = 0.0  # a place is not read twice
            pairs = sequence.drop[:, part] + after.max(axis=2)
            exact = pairs.max(axis=1)
            best = exact if part.start == 0 else np.maximum(best, exact)
        return np.asarray(best)
    if m > (_MOST_PLACES if not sequence.read else _MOST_INSIDE):
        return np.asarray(best)
    noise = sequence.problem.noise[:, None] * np.ones(m)
    for row in range(L):
        sequence.problem.check()
        try:
            largest = eigh(
                S[row],
                C[row] + np.diag(noise[row]),
                eigvals_only=True,
                subset_by_index=(max(m - k, 0), m - 1),
            )
        except LinAlgError:  # noise lost in rounding: what there is at all still bounds
            continue
        # The pencil's eigenvalues are right to a few digits less than those of its matrices.
        best[row] = min(best[row], float(np.maximum(largest, 0.0).sum()) * (1.0 + 1e-7))
    return np.asarray(best)


def _greedy(sequence: MapCovarianceState) -> tuple[FloatArray, Sets, FloatArray]:
    """Walks greedy on average over the belief, and under the most probable λ."""
    of = sequence.of
    L = len(of.weights)
    focus = np.zeros((min(L, 2) + 1, L))
    focus[0] = of.weights
    focus[np.arange(1, len(focus)), np.argsort(-of.weights, kind="stable")[: len(focus) - 1]] = 1.0
    fixed, sets = [], []
    for weights in focus:
        total, at = np.zeros(L), sequence
        read = at.read
        for left in range(sequence.k, 0, -1):
            if not len(at.candidates):
                break
            at.prepare()
            pick = int(first_best(weights @ at.drop, floor=NAT))
            total = total + at.drop[:, pick]
            read = _with(at.read, int(at.numbers[at.candidates[pick]]))
            if left > 1:
                at = at.child(pick)
        fixed.append(total)
        sets.append(read)
    return np.stack(fixed), sets, np.maximum(sequence.ceiling, np.max(fixed, axis=0))


def _free_children(sequence: MapCovarianceState) -> list[tuple[FloatArray, Sets, FloatArray]]:
    """As `best_sets` of each child of a free choice: one greedy walk, all side by side."""
    of, A = sequence.of, len(sequence.candidates)
    C, S = sequence.covariance, sequence.shared
    L, m = C.shape[0], C.shape[1]
    numbers = sequence.numbers
    noise = sequence.problem.noise[:, None, None]
    ceiling = np.maximum(sequence.ceiling[:, None] - sequence.drop, 0.0)
    found: list[tuple[FloatArray, Sets, FloatArray]] = []
    for part in _slices(A, L * m * (2 + 2 * sequence.k)):
        sequence.problem.check()
        here = sequence.candidates[part]
        every = np.arange(len(here))
        closed = np.zeros((len(here), m), dtype=bool)
        closed[every, here] = True
        first = [(sequence._rows[:, part], sequence._side[:, part])]
        variance = np.maximum(sequence.latent_after(part) + noise, 1e-300)
        own = sequence.drop_after(part) * variance
        total = np.zeros((L, len(here)))
        picks = [here]
        for stage in range(sequence.k - 1):
            drop = own / variance
            score = np.tensordot(of.weights, drop, axes=1)
            pick = first_best(np.where(closed, -np.inf, score), floor=NAT)
            taken = drop[:, every, pick]
            total += taken
            closed[every, pick] = True
            picks.append(pick)
            if stage == sequence.k - 2:
                break
            c, s = C[:, pick, :], S[:, pick, :]
            # The first visit divides by its variance in `side` and in `gain`.
            for number, (row, side) in enumerate(first):
                back = sequence.gain[:, part] if number == 0 else row
                c = c - row[:, every, pick, None] * back
                s = s - row[:, every, pick, None] * side - side[:, every, pick, None] * row
            v = variance[:, every, pick, None]
            d = c / np.sqrt(v)
            e = (s - 0.5 * taken[:, :, None] * c) / np.sqrt(v)
            first.append((d, e))
            variance = np.maximum(variance - d * d, noise)
            own = np.maximum(own - 2.0 * d * e, 0.0)
        chosen = np.sort(numbers[np.stack(picks, axis=1)], axis=1)
        for i, row in enumerate(chosen.tolist()):
            best = np.maximum(ceiling[:, part.start + i], total[:, i])
            found.append((total[:, i][None], [tuple(sorted((*sequence.read, *row)))], best))
    return found


def _slices(A: int, each: int) -> list[slice]:
    step = max(1, _CHUNK // each)
    return [slice(start, min(start + step, A)) for start in range(0, A, step)]
