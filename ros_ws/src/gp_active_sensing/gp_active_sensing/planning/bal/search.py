"""Which states to expand next: the published rule, a gap-directed one, or all of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import numpy as np

from gp_active_sensing.planning.bal.tree import StateBlock, Tree
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import NAT, by_size, first_best

__all__ = ["SEARCHES", "exhaustive", "gap_directed", "published"]

Room = Callable[[], int]
"""How many more states may be expanded; 0 = the limit is reached."""
Search = Callable[[Tree, float, Room], None]

_ENTRIES = 60_000
"""About how many numbers one step of the gap-directed search computes: a few milliseconds."""
_WORTH = 0.02
"""A step takes the branches whose share of the gap is at least this part of the largest share."""


def gap_directed(tree: Tree, alpha: float, room: Room) -> None:
    """Expand where the root's gap comes from, many states at a time.

    The optimistic policy takes the candidate with the largest upper bound in every state; no other
    can prove the answer wrong. Of the branches at its frontier those with the largest
    probability-weighted gap are expanded together, then bounds are backed up.
    """
    if tree.gap <= alpha or room() < 1:
        return
    root = tree.expand_root()
    while tree.gap > alpha and (left := room()) > 0:
        # Where all that is left of the gap is rounding, the first of ties may have none of it.
        whole = np.arange(1)
        found = list(_frontier(root, whole)) or list(_frontier(root, whole, exact=True))
        if not found:
            return  # the optimistic policy has no gap left: neither has the root
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
    """Return about how many numbers an expansion of a branch at candidate `a` computes."""
    child = block.sequence.child(a)
    S = block.branch_lower.shape[2]
    return int(max(1, len(child.candidates)) * S * block.weights.shape[1])


def _frontier(
    block: StateBlock, rows: IntArray, *, exact: bool = False
) -> Iterator[tuple[StateBlock, int, IntArray, IntArray, FloatArray]]:
    """Yield (block, candidate, rows, branches, weighted gaps) of the optimistic policy's frontier.

    Args:
        block: where to look.
        rows: (r,) its states that the policy reaches.
        exact: ties are broken by the last digit.
    """
    found = block.successors
    if found is None:
        return
    upper = block.q_upper[rows]
    best = upper.argmax(axis=1) if exact else first_best(upper, floor=NAT)
    gaps = block.branch_upper[rows, best] - block.branch_lower[rows, best]
    weighted = block.reach[rows, None] * found.probability[rows, best] * gaps
    is_open = ~block.taken[rows, best] & (weighted > 0.0)
    chosen = np.full(len(block.row), -1)
    for a in np.unique(best):
        mine = np.flatnonzero(best == a)
        at, i = np.nonzero(is_open[mine])
        if at.size:
            yield block, int(a), rows[mine[at]], i, weighted[mine[at], i]
        chosen[rows[mine]] = a
    for a, blocks in block.children.items():
        for child in blocks:
            inside = np.flatnonzero(chosen[child.row] == a)
            if inside.size:
                yield from _frontier(child, inside, exact=exact)


def published(tree: Tree, alpha: float, room: Room) -> None:
    """Search as Algorithm 1 does. [Hoang2014, Algorithm 1].

    EXPLORE follows, from a state, the successor with the largest lower bound (ties: largest
    upper) among those whose gap exceeds α and queues the others; the queue gives the state with
    the largest lower bound, until the root's gap is at most α.
    """
    if tree.gap <= alpha or room() < 1:
        return
    queue: list[tuple[float, float, int, int, _Waiting]] = []
    block = tree.expand_root()
    while True:
        while block.successors is not None:  # EXPLORE
            waiting = _Waiting(block, alpha)
            if not waiting.left or room() < 1:
                break
            slots = waiting.take()
            if waiting.left:
                heapq.heappush(queue, (*waiting.bounds(), tree.expanded, 1, waiting))
            block = tree.expand(*slots)
        tree.back_up([block])
        if not queue or tree.gap <= alpha or room() < 1:
            return
        *_, order, place, waiting = heapq.heappop(queue)
        slots = waiting.take()
        if waiting.left:
            heapq.heappush(queue, (*waiting.bounds(), order, place + 1, waiting))
        block = tree.expand(*slots)


class _Waiting:
    """The successors of one state that are worth exploring, best first.

    The queue holds the first of each such collection that is not explored yet: their order is
    then that of one queue of all states, at a small part of the pushes. Few of them are ever
    explored, so that each is looked for when it is wanted instead of sorting all.
    """

    def __init__(self, block: StateBlock, alpha: float) -> None:
        lower, upper = block.branch_lower[0], block.branch_upper[0]
        self._block, self._shape = block, lower.shape
        self._lower = np.where(upper - lower > alpha, lower, -np.inf).ravel()
        self._upper = upper.ravel()  # no slot's own bounds change before it is explored
        self.left = int(np.count_nonzero(self._lower > -np.inf))
        self._first = self._find()

    def _find(self) -> int:
        first = int(self._lower.argmax())
        ties = np.flatnonzero(self._lower == self._lower[first])
        return first if len(ties) == 1 else int(ties[self._upper[ties].argmax()])

    def bounds(self) -> tuple[float, float]:
        """Return what the queue sorts by: largest lower bound first, then largest upper."""
        return -float(self._lower[self._first]), -float(self._upper[self._first])

    def take(self) -> tuple[StateBlock, int, IntArray, IntArray]:
        """Remove the best and return it, as `Tree.expand` takes it."""
        a, i = divmod(self._first, self._shape[1])
        self._lower[self._first] = -np.inf
        self.left -= 1
        self._first = self._find()
        return self._block, a, np.zeros(1, np.int64), np.array([i])


def exhaustive(tree: Tree, alpha: float, room: Room) -> None:
    """Expand every state, level by level, whatever its bounds say.

    With the published draws this is the only search that surely ends on the value of Eq. 8: its
    bounds may miss that value, and then they prune what they should not.
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


SEARCHES: dict[str, Search] = {
    "gap": gap_directed,
    "published": published,
    "exhaustive": exhaustive,
}
