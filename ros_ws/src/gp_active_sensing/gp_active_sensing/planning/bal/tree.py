"""The search tree of ⟨α,ε⟩-BAL: states, their bounds, expansion and backup.

Covariances depend on the visited places only, so states that have visited the same places in the
same order differ in weights and means alone: they are expanded together, as one `StateBlock`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gp_active_sensing.planning.bal.branching import Branching
from gp_active_sensing.planning.bal.covariance_state import CovarianceState
from gp_active_sensing.planning.bal.discretise import Successors
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

__all__ = ["StateBlock", "Tree"]


@dataclass
class StateBlock:
    """Expanded states (n, z_D), a row each: same visited places, different readings.

    Args:
        sequence: the visited places.
        parent: where the states were branches, at candidate `move`; None at the root.
        row: (r,) state of the parent that each came from.
        branch: (r,) branch of that state.
        reach: (r,) probability of the readings, given the moves.
        mean: (r, L, m) posterior means of ``sequence.locations``.
        weights: (r, L) belief.
        lower, upper: (r,) bounds on the states' values [nat].
    """

    sequence: CovarianceState
    parent: StateBlock | None
    move: int
    row: IntArray
    branch: IntArray
    reach: FloatArray
    mean: FloatArray
    weights: FloatArray
    lower: FloatArray
    upper: FloatArray
    successors: Successors | None = None
    branch_lower: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    branch_upper: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    taken: BoolArray = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=bool))
    """(r, A, S) branches that have been expanded themselves."""
    q_lower: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    q_upper: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    children: dict[int, list[StateBlock]] = field(default_factory=dict)

    def path(self, row: int) -> tuple[int, ...]:
        """Return the (candidate, branch, …) choices that led to a state."""
        if self.parent is None:
            return ()
        above = self.parent.path(int(self.row[row]))
        return (*above, self.move, int(self.branch[row]))

    def child(self, row: int, move: int, branch: int) -> tuple[StateBlock, int] | None:
        """Return block and row of a branch that has been expanded, None for another."""
        for block in self.children.get(move, ()):
            found = np.flatnonzero((block.row == row) & (block.branch == branch))
            if found.size:
                return block, int(found[0])
        return None


class Tree:
    """The states expanded so far, and bounds on the root's value.

    Args:
        values: how states are branched and valued.
        sequence: the map before the first visit.
        mean: (L, m) means there.
        weights: (L,) belief.
    """

    def __init__(
        self, values: Branching, sequence: CovarianceState, mean: FloatArray, weights: FloatArray
    ) -> None:
        self.values = values
        self.sequence = sequence
        self.expanded = 0
        self._nbytes = 0
        self.root: StateBlock | None = None
        self._mean, self._weights = mean, weights
        self._lower, self._upper = values.root_bounds(sequence, weights)

    @property
    def lower(self) -> float:
        """Lower bound on the root's value [nat]."""
        return self._lower if self.root is None else float(self.root.lower[0])

    @property
    def upper(self) -> float:
        """Upper bound on the root's value [nat]."""
        return self._upper if self.root is None else float(self.root.upper[0])

    @property
    def nbytes(self) -> int:
        """Memory that the states and their covariances take, about."""
        return self._nbytes + self.sequence.problem.nbytes

    @property
    def gap(self) -> float:
        """``upper - lower`` [nat]."""
        return self.upper - self.lower

    def expand_root(self) -> StateBlock:
        """Expand the root."""
        zero = np.zeros(1, dtype=np.int64)
        self.root = StateBlock(
            self.sequence,
            None,
            0,
            zero,
            zero,
            np.ones(1),
            self._mean[None],
            self._weights[None],
            np.array([self._lower]),
            np.array([self._upper]),
        )
        self._fill(self.root)
        return self.root

    def expand(self, parent: StateBlock, a: int, row: IntArray, i: IntArray) -> StateBlock:
        """Expand branches of a block, all in one; the bounds above follow with `back_up`.

        Args:
            parent: the block.
            a: number of the candidate.
            row: (r,) states of the block.
            i: (r,) branches of these states.

        Raises:
            ValueError: a block at the last stage has no branches.
        """
        if parent.successors is None:
            msg = "a block at the last stage has no branches"
            raise ValueError(msg)
        sequence, found = parent.sequence, parent.successors
        child = sequence.child(a)
        kept = sequence.kept[a]
        mean = parent.mean[row]
        surprise = found.values[row, a, i][:, None] - mean[:, :, sequence.candidates[a]]
        block = StateBlock(
            child,
            parent,
            a,
            row,
            i,
            parent.reach[row] * found.probability[row, a, i],
            mean[:, :, kept] + surprise[:, :, None] * sequence.gain[:, a, kept],
            found.weights[row, a, i],
            parent.branch_lower[row, a, i],
            parent.branch_upper[row, a, i],
        )
        self._fill(block)
        parent.taken[row, a, i] = True
        parent.children.setdefault(a, []).append(block)
        return block

    def _fill(self, block: StateBlock) -> None:
        self.expanded += len(block.row)
        sequence = block.sequence
        sequence.prepare()
        self._nbytes += block.mean.nbytes + block.weights.nbytes
        if not len(sequence.candidates):  # a dead end: no reading to come
            block.q_lower = block.q_upper = np.zeros((len(block.row), 1))
        elif sequence.k == 1:
            block.q_lower = block.q_upper = self.values.last(block)
        else:
            found = self.values.discretise(block)
            low, up = self.values.branch_bounds(block, found)
            block.successors, block.branch_lower, block.branch_upper = found, low, up
            self._nbytes += found.nbytes + 2 * low.nbytes
            block.taken = np.zeros(low.shape, dtype=bool)
            block.q_lower = found.reward + (found.probability * low).sum(axis=2)
            block.q_upper = found.reward + (found.probability * up).sum(axis=2)
        self._take(block)

    def _take(self, block: StateBlock) -> None:
        lower, upper = block.q_lower.max(axis=1), block.q_upper.max(axis=1)
        if self.values.sound:
            # Both the old and the new bounds hold for the tree's own value. They meet within
            # rounding; then the upper one gives way.
            lower = np.maximum(block.lower, lower)
            upper = np.maximum(lower, np.minimum(block.upper, upper))
        block.lower, block.upper = lower, upper

    def back_up(self, blocks: list[StateBlock]) -> None:
        """Pass the bounds of new blocks up to the root. [Hoang2014, Eq. 14]."""
        waiting = {id(block): block for block in blocks}
        while waiting:
            # The deepest first: every block above is then visited once.
            block = min(waiting.values(), key=lambda b: b.sequence.k)
            del waiting[id(block)]
            above = block.parent
            if above is None or above.successors is None:
                continue
            a, found = block.move, above.successors
            above.branch_lower[block.row, a, block.branch] = block.lower
            above.branch_upper[block.row, a, block.branch] = block.upper
            p = found.probability[:, a]
            above.q_lower[:, a] = found.reward[:, a] + (p * above.branch_lower[:, a]).sum(axis=1)
            above.q_upper[:, a] = found.reward[:, a] + (p * above.branch_upper[:, a]).sum(axis=1)
            self._take(above)
            waiting[id(above)] = above
