"""What states take off the error of the map: by cells, with bounds that always hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from gp_active_sensing.planning.bal.covariance_state import CovarianceState, Leaves
from gp_active_sensing.planning.bal.disagreement import disagreement
from gp_active_sensing.planning.bal.discretise import Successors, cut, cut_cells
from gp_active_sensing.planning.bal.map_bounds import best_sets, bounds_of, children_best_sets
from gp_active_sensing.planning.bal.map_covariance_state import MapCovarianceState
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.ties import NAT, first_best

if TYPE_CHECKING:
    from gp_active_sensing.planning.bal.tree import StateBlock

__all__ = ["MapCells"]

_CHUNK = 1 << 17
"""Numbers in the largest temporary array: what the processor's cache holds of them."""
_LARGE_CHUNK = 2_000_000


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
