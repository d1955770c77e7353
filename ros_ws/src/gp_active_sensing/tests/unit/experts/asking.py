from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.planning import policies
from gp_active_sensing.planning.base import PolicyState
from gp_active_sensing.planning.greedy import MaxEntropy
from gp_active_sensing.topology.base import Topology


@dataclass(frozen=True)
class Asking(MaxEntropy):
    """Asks at places drawn at random, then goes where it knows least."""

    wanted: int = param(3, help="places asked for before each decision", low=0)

    @property
    def asks(self) -> bool:
        return self.wanted > 0

    def queries(
        self,
        belief: Belief,
        topology: Topology,
        *,
        rng: np.random.Generator,
        state: PolicyState = None,
        places: Collection[int] | None = None,
    ) -> tuple[int, ...]:
        pool = np.arange(topology.n) if places is None else np.array(sorted(places))
        size = min(self.wanted, pool.size)
        return tuple(int(place) for place in rng.choice(pool, size=size, replace=False))


@contextmanager
def registered(policy: type[Asking] = Asking) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(policies._factories, "asking", policy)
        yield
