"""One decision: where the probe may go from here, and what is noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable
from typing import NamedTuple

import numpy as np

from gp_active_sensing.planning.budget import BudgetConstraint, FeasibleMove
from gp_active_sensing.planning.entropy import gaussian_entropy
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, Budget, FloatArray, IntArray

__all__ = ["DELICATE", "Deadline", "DecisionProblem", "ReachableSet"]


DELICATE = 1e-8
"""Noise this small against a latent variance is near what rounding leaves of it."""


class Deadline(Exception):
    """The time for planning is over."""


class ReachableSet(NamedTuple):
    """What can follow a state.

    Args:
        places: every place that some visiting sequence holds.
        sequences: number of visiting sequences; None when there are more than the cap.
        longest: most readings that a sequence holds; None when there are more than the cap.
    """

    places: frozenset[int]
    sequences: int | None
    longest: int | None = None


class _TooManyError(Exception):
    """More visiting sequences than the cap."""


class DecisionProblem:
    """One decision: the places within reach, and what is noise.

    Args:
        topology: where a probe may go.
        observed: (n,) observed or pending places.
        unavailable: places not to be chosen.
        noise: (L,) noise variances.
        reference: (L,) entropy of the noise, taken off every reading's entropy.
        cap: largest number of visiting sequences enumerated; beyond it bounds are greedy.
        check: raises `Deadline` when the time is over.
        constraint: what the probe can afford, obeyed at every stage of every sequence; None =
            whatever the moves allow. What is left of it, `left` below, then goes along with the
            places visited.
    """

    def __init__(
        self,
        topology: Topology,
        observed: BoolArray,
        unavailable: Collection[int],
        noise: FloatArray,
        reference: FloatArray,
        cap: int,
        check: Callable[[], None],
        constraint: BudgetConstraint | None = None,
    ) -> None:
        self.topology = topology
        self.constraint = constraint
        self.free = topology.free and constraint is None
        """Any place may be next, whatever was visited."""
        self.observed = observed.copy()
        self.unavailable = unavailable
        self.noise = noise
        self.reference = reference
        self.cap = cap
        self.check = check
        self.nbytes = 0
        """Memory that the sequences' covariances take, about."""
        self.delicate = False
        """Noise is near rounding: covariances are then kept from exceeding what variances allow."""
        self._enumerated: dict[Hashable, ReachableSet] = {}
        self._drives: dict[Hashable, dict[int, FeasibleMove]] = {}
        self._hopeless = math.inf
        self._asked = 0

    def candidates(
        self, at: int | None, visited: Collection[int], left: Budget | None = None
    ) -> IntArray:
        """Return the places that may be next after `visited`, sorted.

        Args:
            at: where the probe stands.
            visited: places visited since the root, and crossed on the way.
            left: of the budget, where there is a constraint; None = all of it.
        """
        if self.constraint is not None:
            return np.array(list(self._affordable(at, frozenset(visited), left)), dtype=np.int64)
        where = list(visited)
        self.observed[where] = True
        try:
            return self.topology.candidates(at, self.observed, self.unavailable)
        finally:
            self.observed[where] = False

    def after(
        self, at: int | None, visited: frozenset[int], left: Budget | None, x: int
    ) -> tuple[frozenset[int], Budget | None]:
        """Return the places visited, and what is left of the budget, after driving on to `x`."""
        if self.constraint is None:
            return visited | {x}, None
        drive = self._affordable(at, visited, left)[x]
        return visited.union(drive.reads), drive.left(left or self.constraint.budget)

    def state(self, at: int | None, visited: frozenset[int], left: Budget | None) -> Hashable:
        """Return what tells states of the map apart: all that follows is the same where it is."""
        if self.free:
            return visited
        if self.constraint is None or left is None:
            return at, visited
        # Sums of the same costs in another order differ by rounding.
        metres = None if left.metres is None else round(left.metres, 6)
        seconds = None if left.seconds is None else round(left.seconds, 6)
        return at, visited, left.readings, metres, seconds

    def _affordable(
        self, at: int | None, visited: frozenset[int], left: Budget | None
    ) -> dict[int, FeasibleMove]:
        key = self.state(at, visited, left)
        known = self._drives.get(key)
        if known is not None or self.constraint is None:
            return known or {}
        where = list(visited)
        self.observed[where] = True
        try:
            drives = self.constraint.drives(at, self.observed, self.unavailable, left)
        finally:
            self.observed[where] = False
        known = self._drives[key] = {drive.place: drive for drive in drives}
        return known

    def entropy(self, variance: FloatArray) -> FloatArray:
        """Return ``H[Z|λ]`` less that of the noise for latent variances (L, …)."""
        shape = (-1,) + (1,) * (variance.ndim - 1)
        noise, reference = self.noise.reshape(shape), self.reference.reshape(shape)
        return gaussian_entropy(variance + noise) - reference

    def outlook(
        self, at: int | None, visited: frozenset[int], k: int, left: Budget | None = None
    ) -> ReachableSet:
        """Return what can follow `visited` with k readings to come.

        Sequences are enumerated up to the cap. That keeps the places few: on a map whose
        roads are mostly observed, all those that some crossing of observed roads reaches are
        many times those that the next k readings can hold. Beyond the cap the places are
        `Topology.reachable`, which may hold more.
        """
        if not self.free and k < self._hopeless:
            self._asked = 0
            try:
                return self._enumerate(at, visited, k, left)
            except _TooManyError:
                self._hopeless = k
        reach = self._reachable(at, visited, k)
        return ReachableSet(reach, self.free_sequences(len(reach), k) if self.free else None)

    def free_sequences(self, places: int, k: int) -> int | None:
        """Return how many sequences a free choice among so many places has, None beyond the cap."""
        count = math.perm(places, min(k, places))
        return count if count <= self.cap else None

    def _enumerate(
        self, at: int | None, visited: frozenset[int], k: int, left: Budget | None
    ) -> ReachableSet:
        key = (k, self.state(at, visited, left))
        known = self._enumerated.get(key)
        if known is not None:
            return known
        here = self.candidates(at, visited, left).tolist()
        self._asked += max(1, len(here))
        if self._asked > self.cap:
            raise _TooManyError
        places, sequences, longest = set(here), max(1, len(here)), min(1, len(here))
        if k > 1 and here:
            sequences = 0
            for x in here:
                then, rest = self.after(at, visited, left, x)
                inner = self._enumerate(x, then, k - 1, rest)
                places |= inner.places
                sequences += inner.sequences or 0
                longest = max(longest, 1 + (inner.longest or 0))
        if sequences > self.cap:
            raise _TooManyError
        self._enumerated[key] = outlook = ReachableSet(frozenset(places), sequences, longest)
        return outlook

    def _reachable(self, at: int | None, visited: Collection[int], k: int) -> frozenset[int]:
        where = list(visited)
        self.observed[where] = True
        try:
            reach = self.topology.reachable(at, self.observed, k, self.unavailable)
        finally:
            self.observed[where] = False
        return frozenset(np.flatnonzero(reach).tolist())
