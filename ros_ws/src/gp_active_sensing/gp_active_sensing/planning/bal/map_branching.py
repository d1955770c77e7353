"""Values of states where the error of the map counts, and bounds (docs/theory.md, "Map error")."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.linalg import LinAlgError, eigh

from gp_active_sensing.planning.bal.covariance_state import CovarianceState, Leaves
from gp_active_sensing.planning.bal.disagreement import disagreement
from gp_active_sensing.planning.bal.discretise import Successors, cut, cut_cells
from gp_active_sensing.planning.bal.map_covariance_state import MapCovarianceState
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.ties import NAT, first_best

if TYPE_CHECKING:
    from gp_active_sensing.planning.bal.tree import StateBlock

__all__ = [
    "MapCells",
    "best_sets",
    "bounds_of",
    "children_best_sets",
]

_KEPT = 8
"""About how many feasible sequences are kept for the lower bound."""
_LARGE_CHUNK = 2_000_000
"""Numbers in the largest temporary array."""
_MOST_PLACES = 400
"""Places up to which the eigenvalues of the pencil are computed at the root,"""
_MOST_INSIDE = 100
"""and at any other state."""
_CHUNK = 1 << 17
"""Numbers in the largest temporary array: what the processor's cache holds of them."""


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
    step = max(1, _LARGE_CHUNK // each)
    return [slice(start, min(start + step, A)) for start in range(0, A, step)]


class MapCells:
    """Cells of equal probability at every stage, the last among them; see `Branching`.

    Values are shares of the present error of the map.

    Args:
        samples: branches per candidate, S.
    """

    sound = True

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def root_bounds(self, sequence: CovarianceState, weights: FloatArray) -> tuple[float, float]:
        """See `Branching`."""
        sequence = cast(MapCovarianceState, sequence)
        fixed, sets, best = best_sets(sequence)
        doubts = sequence.of.disagreement.after(sets)
        lower, upper = bounds_of(
            fixed[None], doubts[None], best[None], sequence.doubt[None], weights[None, None]
        )
        return lower.item(), upper.item()

    def discretise(self, block: StateBlock) -> Successors:
        """See `Branching`."""
        sequence, weights = cast(MapCovarianceState, block.sequence), block.weights
        sequence.prepare()
        mean = block.mean[:, :, sequence.candidates]
        b, medians, joint = cut_cells(weights, mean, sequence.variance, self.samples)
        probability = joint.sum(axis=0)
        shape = (*weights.shape[:-1], len(sequence.candidates))
        reward = self._reward(sequence, weights, joint, probability)
        # A cell no component reaches keeps the belief; its probability of zero removes it anyway.
        empty = probability <= 0.0
        joint = np.where(empty, b[:, None], joint) / np.where(empty, 1.0, probability)
        return Successors(
            np.ascontiguousarray(medians.T).reshape(*shape, self.samples),
            np.ascontiguousarray(probability.T).reshape(*shape, self.samples),
            np.ascontiguousarray(joint.T).reshape(*shape, self.samples, weights.shape[-1]),
            reward,
        )

    def last(self, block: StateBlock) -> FloatArray:
        """See `Branching`."""
        sequence, weights = cast(MapCovarianceState, block.sequence), block.weights
        mean = block.mean[:, :, sequence.candidates]
        _, _, joint = cut_cells(weights, mean, sequence.variance, self.samples)
        return self._reward(sequence, weights, joint, joint.sum(axis=0))

    def _reward(
        self,
        sequence: MapCovarianceState,
        weights: FloatArray,
        joint: FloatArray,
        probability: FloatArray,
    ) -> FloatArray:
        """(r, A) what a reading of each candidate takes off: ``Σ b r_λ + D(b) - Σ_i w_i D'(b_i)``.

        Args:
            sequence: the state.
            weights: (r, L) beliefs.
            joint: (L, S, r A) of `cut_cells`.
            probability: (S, r A).
        """
        L, A = len(joint), len(sequence.candidates)
        r = len(weights)
        p = np.transpose(joint.reshape(L, -1, r, A), (3, 0, 1, 2)).reshape(A, L, -1)
        whole = np.transpose(probability.reshape(-1, r, A), (2, 0, 1)).reshape(A, -1)
        left = _expected_disagreement(sequence.child_doubts(), p, whole).reshape(A, -1, r)
        now = disagreement(sequence.doubt, weights)
        return np.asarray(weights @ sequence.drop + now[:, None] - left.sum(axis=1).T)

    def branch_bounds(self, block: StateBlock, found: Successors) -> tuple[FloatArray, FloatArray]:
        """See `Branching`; exact where one reading is to come and candidates are few."""
        sequence = cast(MapCovarianceState, block.sequence)
        if sequence.k == 2 and (leaves := sequence.leaves()) is not None:
            values = self._leaf_values(block, found, leaves)
            return values, values
        if sequence.k == 2:
            return _last_stage_bounds(sequence, found)
        fixed, doubts, best = children_best_sets(sequence)
        return bounds_of(fixed, doubts, best, sequence.child_doubts(), found.weights)

    def _leaf_values(self, block: StateBlock, found: Successors, leaves: Leaves) -> FloatArray:
        """(r, A, S) values of the last stages after every branch."""
        sequence = cast(MapCovarianceState, block.sequence)
        r, A, S = found.probability.shape
        X, L = len(leaves.where), found.weights.shape[-1]
        drop, doubts = sequence.leaf_drops(), sequence.leaf_doubts()
        now = disagreement(sequence.child_doubts(), found.weights)  # (r, A, S)
        owner, where = leaves.owner, leaves.where
        gain = sequence.gain[:, owner, where][:, :, None]  # (L, X, 1)
        std = np.sqrt(leaves.variance)
        out = np.empty((r, A, S))
        step = max(1, _CHUNK // (S * X * L * self.samples))
        for start in range(0, r, step):
            part = slice(start, min(start + step, r))
            K = S * (part.stop - start)
            values = np.ascontiguousarray(np.moveaxis(found.values[part], 0, -1))  # (A, S, r)
            weights = np.ascontiguousarray(np.transpose(found.weights[part], (3, 1, 2, 0)))
            mean = np.moveaxis(block.mean[part], 0, -1)  # (L, m, r)
            moved = mean[:, where] - gain * mean[:, sequence.candidates[owner]]
            moved = moved[:, :, None] + gain[..., None] * values[owner]  # (L, X, S, r)
            b = weights[:, owner].reshape(L, X * K)
            _, joint = cut(b, moved.reshape(L, X * K), np.repeat(std, K, axis=1), self.samples)
            p = np.transpose(joint.reshape(L, -1, X, K), (2, 0, 1, 3)).reshape(X, L, -1)
            whole = joint.sum(axis=0).reshape(-1, X, K)
            left = _expected_disagreement(
                doubts, p, np.swapaxes(whole, 0, 1).reshape(X, -1)
            ).reshape(X, -1, K)
            told = (drop[:, :, None] * b.reshape(L, X, K)).sum(axis=0)
            best = np.maximum.reduceat(told - left.sum(axis=1), leaves.starts, axis=0)
            out[part] = np.moveaxis(best.reshape(A, S, -1), -1, 0)
        return np.asarray(out + now)


def _expected_disagreement(
    doubts: FloatArray, joint: FloatArray, probability: FloatArray
) -> FloatArray:
    """Return ``w_i D(b_i)``, (X, N), for h (X, L, L), ``w_i b_i`` (X, L, N) and w_i (X, N)."""
    found = ((doubts @ joint) * joint).sum(axis=1)
    return np.asarray(found / np.where(probability > 0.0, probability, 1.0))


def _last_stage_bounds(
    sequence: MapCovarianceState, found: Successors
) -> tuple[FloatArray, FloatArray]:
    """Return bounds (r, A, S) on the states after each branch, with one reading to come.

    The place that may be last is chosen for the belief below; above, it is the largest drop that
    the belief of the branch expects.
    """
    A, m = len(sequence.candidates), len(sequence.locations)
    r, _, S, L = found.weights.shape
    lower, upper = np.empty(found.probability.shape), np.empty(found.probability.shape)
    focus = sequence.of.weights
    step = max(1, _LARGE_CHUNK // (m * max(L, S)))
    numbers = sequence.numbers
    for start in range(0, A, step):
        sequence.problem.check()
        part = slice(start, min(start + step, A))
        drop = np.swapaxes(sequence.drop_after(part), 0, 1)  # (a, L, m)
        closed = ~sequence.allowed_after(part)
        dead = np.asarray(closed.all(axis=1))
        expected = np.where(closed, -np.inf, np.einsum("l,alm->am", focus, drop))
        pick = first_best(np.where(dead[:, None], 0.0, expected), floor=NAT)
        x = numbers[sequence.candidates[part]]
        sets = [
            tuple(sorted((*sequence.read, a) if d else (*sequence.read, a, y)))
            for a, y, d in zip(x.tolist(), numbers[pick].tolist(), dead.tolist(), strict=True)
        ]
        doubts = sequence.of.disagreement.after(sets)
        fixed = drop[np.arange(len(pick)), :, pick]
        fixed[dead] = 0.0
        for row in range(r):
            b = found.weights[row, part]  # (a, S, L)
            now = disagreement(sequence.child_doubts()[part], b)
            most = np.where(closed[:, None], -np.inf, b @ drop).max(axis=-1)
            least = (b @ fixed[:, :, None])[..., 0] - disagreement(doubts, b)
            most = np.where(dead[:, None], -now, most)
            lower[row, part] = np.where(dead[:, None], 0.0, now + least)
            upper[row, part] = np.where(dead[:, None], 0.0, now + most)
    return lower, np.maximum(lower, upper)
