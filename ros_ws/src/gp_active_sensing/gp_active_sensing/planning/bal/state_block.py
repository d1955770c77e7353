"""Blocks of states of the search; all states of a block have the same visited places."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gp_active_sensing.planning.bal.covariance_state import CovarianceState
from gp_active_sensing.planning.bal.discretise import Successors
from gp_active_sensing.types import BoolArray, FloatArray, IntArray


@dataclass
class StateBlock:
    """States of the search, one per row, with equal visited places and different readings.

    Args:
        sequence: covariances after the visited places.
        parent: block whose branches at candidate `move` lead to these states; None at the root.
        row: (r,) row of each state's parent state in `parent`.
        branch: (r,) index of the branch that leads from the parent state to each state.
        reach: (r,) probability of the readings on the path, given the visited places.
        mean: (r, L, m) posterior means of ``sequence.locations``.
        weights: (r, L) weights of the hyperparameter candidates.
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
    """Mask (r, A, S) of the expanded branches."""
    q_lower: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    q_upper: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    children: dict[int, list[StateBlock]] = field(default_factory=dict)

    def path(self, row: int) -> tuple[int, ...]:
        """Return the choices (candidate, branch, …) from the root to a state."""
        if self.parent is None:
            return ()
        above = self.parent.path(int(self.row[row]))
        return (*above, self.move, int(self.branch[row]))

    def child(self, row: int, move: int, branch: int) -> tuple[StateBlock, int] | None:
        """Return the block and the row of the state after a branch; None = it is not expanded."""
        for block in self.children.get(move, ()):
            found = np.flatnonzero((block.row == row) & (block.branch == branch))
            if found.size:
                return block, int(found[0])
        return None
