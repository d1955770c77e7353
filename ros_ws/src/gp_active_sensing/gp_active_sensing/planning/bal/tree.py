"""Search tree of ⟨α,ε⟩-BAL: states, bounds, expansion, backup, and search orders.

States with the same visited places have equal covariances, so they are expanded together as one
`StateBlock`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import numpy as np

from gp_active_sensing.planning.bal.branching import Branching
from gp_active_sensing.planning.bal.covariance_state import CovarianceState
from gp_active_sensing.planning.bal.state_block import StateBlock
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import NAT, by_size, first_best

_ENTRIES = 60_000
"""Largest number of values that one step of the gap-directed search computes."""
_WORTH = 0.02
"""Smallest probability-weighted gap of an expanded branch, as a fraction of the largest gap."""

Room = Callable[[], int]
"""Function that returns the remaining number of expansions."""


class Tree:
    """Search tree with its expanded states, and bounds on the value of its root.

    The root has the means `mean` (L, m), and the `weights` (L,) of the hyperparameter candidates.
    Before `expand_root`, it has no values of its candidate places.
    """

    def __init__(
        self, values: Branching, sequence: CovarianceState, mean: FloatArray, weights: FloatArray
    ) -> None:
        self.values = values
        self.sequence = sequence
        self.expanded = 0
        self._nbytes = 0
        lower, upper = (np.array([bound]) for bound in values.root_bounds(sequence, weights))
        zero, one = np.zeros(1, dtype=np.int64), np.ones(1)
        self.root = StateBlock(
            sequence, None, 0, zero, zero, one, mean[None], weights[None], lower, upper
        )

    @property
    def lower(self) -> float:
        """Lower bound on the root's value [nat]."""
        return float(self.root.lower[0])

    @property
    def upper(self) -> float:
        """Upper bound on the root's value [nat]."""
        return float(self.root.upper[0])

    @property
    def nbytes(self) -> int:
        """Approximate memory of the states and their covariances [bytes]."""
        return self._nbytes + self.sequence.problem.nbytes

    @property
    def gap(self) -> float:
        """Difference of the bounds on the root's value [nat]."""
        return self.upper - self.lower

    def expand_root(self) -> StateBlock:
        """Expand the root, and return its block."""
        self._fill(self.root)
        return self.root

    def expand(self, parent: StateBlock, a: int, row: IntArray, i: IntArray) -> StateBlock:
        """Expand one branch at candidate `a` for each of r states in the block `parent`.

        `row` (r,) are the indices of the states, and `i` (r,) are the indices of the branches. Call
        `back_up` afterwards to update the bounds of all states on the path to the root.
        """
        sequence, found = parent.sequence, parent.successors
        assert found is not None, "a block at the last stage has no branches"
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
        if not len(sequence.candidates):  # a dead end: no reading follows
            block.q_lower = block.q_upper = np.zeros((len(block.row), 1))
        elif sequence.k == 1:
            block.q_lower = block.q_upper = self.values.last(block)
        else:
            found = self.values.discretise(block)
            low, up = self.values.branch_bounds(block, found)
            block.successors, block.branch_lower, block.branch_upper = found, low, up
            self._nbytes += sum(array.nbytes for array in found) + 2 * low.nbytes
            block.taken = np.zeros(low.shape, dtype=bool)
            block.q_lower = found.reward + (found.probability * low).sum(axis=2)
            block.q_upper = found.reward + (found.probability * up).sum(axis=2)
        self._tighten(block)

    def _tighten(self, block: StateBlock) -> None:
        lower, upper = block.q_lower.max(axis=1), block.q_upper.max(axis=1)
        if self.values.sound:
            # Both the old and the new bounds hold for the value of the tree. If rounding errors
            # make the bounds cross, the upper bound is raised.
            lower = np.maximum(block.lower, lower)
            upper = np.maximum(lower, np.minimum(block.upper, upper))
        block.lower, block.upper = lower, upper

    def back_up(self, blocks: list[StateBlock]) -> None:
        """Update the bounds of all states from new blocks up to the root. [Hoang2014, Eq. 14]."""
        waiting = {id(block): block for block in blocks}
        while waiting:
            # With the deepest block first, every block above is visited once.
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
            self._tighten(above)
            waiting[id(above)] = above


def gap_directed(tree: Tree, alpha: float, room: Room) -> None:
    """Expand the branches that contribute most to the root's gap, many at a time.

    The optimistic policy chooses the candidate place with the largest upper bound in every state.
    Each step expands the unexpanded branches of this policy with the largest probability-weighted
    gaps. It then updates the bounds up to the root.
    """
    if tree.gap <= alpha or room() < 1:
        return
    root = tree.expand_root()
    while tree.gap > alpha and (left := room()) > 0:
        # If the remaining gap is a rounding error, the first of tied candidates may have no gap.
        whole = np.arange(1)
        found = list(_frontier(root, whole)) or list(_frontier(root, whole, exact=True))
        if not found:
            return  # no gap remains on the optimistic policy, so none at the root
        worth = np.concatenate([gap for _, _, _, _, gap in found])
        least = _WORTH * worth.max()
        sizes = np.concatenate([np.full(len(gap), _cost(b, a)) for b, a, _, _, gap in found])
        order = by_size(worth)[:left]
        order = order[worth[order] >= least]
        fits = np.cumsum(sizes[order]) <= _ENTRIES
        fits[0] = True
        chosen = np.zeros(len(worth), dtype=bool)
        chosen[order[fits]] = True
        made, start = [], 0
        for block, a, row, i, gap in found:
            part = chosen[start : start + len(gap)]
            start += len(gap)
            if part.any():
                made.append(tree.expand(block, a, row[part], i[part]))
        tree.back_up(made)


def _cost(block: StateBlock, a: int) -> int:
    child = block.sequence.child(a)
    S = block.branch_lower.shape[2]
    return int(max(1, len(child.candidates)) * S * block.weights.shape[1])


def _frontier(
    block: StateBlock, rows: IntArray, *, exact: bool = False
) -> Iterator[tuple[StateBlock, int, IntArray, IntArray, FloatArray]]:
    """Yield the branches to expand in `gap_directed`, as (block, candidate, rows, branches, gaps).

    `rows` (r,) are indices of the states in `block` that the optimistic policy reaches. Unless
    `exact` is True, values that differ only by a rounding error are ties.
    """
    found = block.successors
    if found is None or block.branch_upper is block.branch_lower:  # exact values have no gap
        return
    upper = block.q_upper[rows]
    best = upper.argmax(axis=1) if exact else first_best(upper, floor=NAT)
    gaps = block.branch_upper[rows, best] - block.branch_lower[rows, best]
    weighted = block.reach[rows, None] * found.probability[rows, best] * gaps
    is_open = ~block.taken[rows, best] & (weighted > 0.0)
    chosen = np.full(len(block.row), -1)
    for a in sorted(set(best.tolist())):
        mine = (best == a).nonzero()[0]
        at, i = np.nonzero(is_open[mine])
        if at.size:
            yield block, a, rows[mine[at]], i, weighted[mine[at], i]
        chosen[rows[mine]] = a
    for a, blocks in block.children.items():
        for child in blocks:
            inside = (chosen[child.row] == a).nonzero()[0]
            if inside.size:
                yield from _frontier(child, inside, exact=exact)


def published(tree: Tree, alpha: float, room: Room) -> None:
    """Search by Algorithm 1 of [Hoang2014].

    From a state, the step EXPLORE considers the successors whose gap exceeds α. EXPLORE follows the
    successor with the largest lower bound, and queues the other successors. The search continues
    with the queued state of largest lower bound, until the root's gap is at most α. Among equal
    lower bounds, the largest upper bound decides.
    """
    if tree.gap <= alpha or room() < 1:
        return
    queue: list[tuple[float, float, int, int, StateBlock, IntArray]] = []
    block = tree.expand_root()

    def follow(block: StateBlock, slots: IntArray, made: int, place: int) -> StateBlock:
        """Expand the branch with the first flat index in `slots`, and queue the others."""
        ways, branches = np.unravel_index(slots[:2], block.taken.shape[1:])
        if len(slots) > 1:
            low, up = (b[0, ways[1], branches[1]] for b in (block.branch_lower, block.branch_upper))
            heapq.heappush(queue, (-low, -up, made, place, block, slots[1:]))
        return tree.expand(block, int(ways[0]), np.zeros(1, np.int64), branches[:1])

    while True:
        while block.successors is not None:  # EXPLORE
            lower, upper = block.branch_lower[0].ravel(), block.branch_upper[0].ravel()
            best_first = np.lexsort((-upper, -lower))
            slots = best_first[(upper - lower > alpha)[best_first]]
            if not slots.size or room() < 1:
                break
            block = follow(block, slots, tree.expanded, 1)
        tree.back_up([block])
        if not queue or tree.gap <= alpha or room() < 1:
            return
        *_, made, place, block, slots = heapq.heappop(queue)
        block = follow(block, slots, made, place + 1)


def exhaustive(tree: Tree, alpha: float, room: Room) -> None:
    """Expand every state, one stage after another, without pruning by bounds.

    With the published draws, the value of the tree [Hoang2014, Eq. 8] may lie outside of the
    bounds. Only this search always finds that value.
    """
    if room() < 1:
        return
    level = [tree.expand_root()]
    while level:
        made: list[StateBlock] = []
        for block in level:
            if block.successors is None:
                continue
            for a in range(block.q_lower.shape[1]):
                row, i = np.nonzero(~block.taken[:, a])
                row, i = row[: room()], i[: room()]
                if row.size and len(block.sequence.child(a).candidates):
                    made.append(tree.expand(block, a, row, i))
        tree.back_up(made)
        level = made


Search = Callable[[Tree, float, Room], None]
SEARCHES: dict[str, Search] = {
    "gap": gap_directed,
    "published": published,
    "exhaustive": exhaustive,
}
