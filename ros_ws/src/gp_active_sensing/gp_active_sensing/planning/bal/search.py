"""Which state to expand next: the published rule, a gap-directed one, or all of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from gp_active_sensing.planning.bal.tree import Expander, State

__all__ = ["SEARCHES", "exhaustive", "gap_directed", "published"]

Search = Callable[[Expander, State, float, Callable[[], bool]], None]
"""(expander, root, alpha, more) -> None; `more` says whether another expansion is allowed."""


def published(expander: Expander, root: State, alpha: float, more: Callable[[], bool]) -> None:
    """Search as Algorithm 1 does. [Hoang2014, Algorithm 1].

    EXPLORE follows, from a state, the successor with the largest lower bound (ties: largest
    upper) among those whose gap exceeds α and queues the others; the queue gives the state with
    the largest lower bound, until the root's gap is at most α.
    """
    queue: list[tuple[float, float, int, list[State], int, int]] = []
    pushed = 0
    line = [root]
    while root.gap > alpha and more():
        while not line[-1].expanded and more():  # EXPLORE
            state = line[-1]
            expander.expand(state)
            wide = np.argwhere(state.branch_upper - state.branch_lower > alpha)
            if not len(wide):
                break
            lower = state.branch_lower[wide[:, 0], wide[:, 1]]
            upper = state.branch_upper[wide[:, 0], wide[:, 1]]
            order = np.lexsort((-upper, -lower))
            for j in order[1:]:
                a, i = int(wide[j, 0]), int(wide[j, 1])
                pushed += 1
                entry = (-float(lower[j]), -float(upper[j]), pushed, list(line), a, i)
                heapq.heappush(queue, entry)
            a, i = (int(v) for v in wide[order[0]])
            line.append(expander.successor(state, a, i))
        expander.back_up(line)
        if not queue:
            return
        *_, parents, a, i = heapq.heappop(queue)
        line = [*parents, expander.successor(parents[-1], a, i)]


def gap_directed(expander: Expander, root: State, alpha: float, more: Callable[[], bool]) -> None:
    """Expand where the root's gap comes from.

    From the root, follow the candidate with the largest upper bound (no other can prove the
    answer wrong) and its branch with the largest probability-weighted gap, and expand the state
    at the end.
    """
    while root.gap > alpha and more():
        line = [root]
        while (found := line[-1].successors) is not None:
            state = line[-1]
            a = int(np.argmax(state.q_upper))
            gaps = found.probability[a] * (state.branch_upper[a] - state.branch_lower[a])
            i = int(np.argmax(gaps))
            if gaps[i] <= 0.0:
                break
            line.append(expander.successor(state, a, i))
        if line[-1].expanded:
            return  # the optimistic candidate has no gap left: neither has the root
        expander.expand(line[-1])
        expander.back_up(line)


def exhaustive(expander: Expander, root: State, alpha: float, more: Callable[[], bool]) -> None:
    """Expand every state, level by level, whatever its bounds say.

    With the published draws this is the only search that surely ends on the value of Eq. 8: its
    bounds may miss that value, and then they prune what they should not.
    """
    lines = [[root]]
    while lines:
        following: list[list[State]] = []
        for line in lines:
            if not more():
                return
            state = line[-1]
            expander.expand(state)
            expander.back_up(line)
            if state.successors is None:
                continue
            for a, sequence in enumerate(state.sequence.children):
                if sequence is not None and len(sequence.candidates):
                    branches = range(state.branch_lower.shape[1])
                    following.extend([*line, expander.successor(state, a, i)] for i in branches)
        lines = following


SEARCHES: dict[str, Search] = {
    "gap": gap_directed,
    "published": published,
    "exhaustive": exhaustive,
}
