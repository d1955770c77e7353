"""One member by its upper bound, the others to explore what is left: UCB-PE and EST-PE.

[Contal2013; Kathuria2016, Algorithm 2]
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp_active_sensing.planning.batches.base import Batch, Start
from gp_active_sensing.planning.batches.confidence import ByEstimate, BySchedule
from gp_active_sensing.planning.batches.region_kernel import RegionKernel
from gp_active_sensing.planning.batches.relevance import region_of
from gp_active_sensing.planning.dpp import greedy_kdpp
from gp_active_sensing.types import IntArray
from gp_active_sensing.util.ties import first_best

__all__ = ["Dpp", "EstDppMax", "UcbDppMax"]


@dataclass(frozen=True)
class Dpp(Batch):
    """The first member has the largest upper bound; the others are a set of a DPP over R⁺.

    Where probes wait one at a time, one of them is on its way to the largest upper bound, and the
    others explore. The t of β_t and of R⁺ counts rounds, not readings [Kathuria2016, Algorithm 2].
    A new one overrides `explore`.
    """

    in_rounds: ClassVar[bool] = True

    @abstractmethod
    def explore(self, kernel: RegionKernel, size: int, rng: np.random.Generator) -> IntArray:
        """Return `size` members of the batch, as indices into ``kernel.places``."""

    def choose(self, start: Start, size: int, rng: np.random.Generator) -> list[int]:
        """Return the next members of the batch; see `Batch.choose`."""
        view, members = start.view, start.members
        chosen: list[int] = []
        if start.lead is None:
            chosen = [int(first_best(start.upper()))]
            members = (*members, int(view.locations[chosen[0]]))
        more = size - len(chosen)
        if more:
            mean, std = view.everywhere
            places = np.concatenate([view.locations, members])
            width = start.widths(view.stage, places, std[places])
            floor = float((mean - width * std)[places].max())
            after = start.widths(view.stage + 1, places, std[places])
            region = region_of(view.mean, view.std, after, floor, size=more, without=chosen)
            kernel = RegionKernel(start.belief, view.locations[region], members)
            chosen += region[self.explore(kernel, more, rng)].tolist()
        return chosen


@dataclass(frozen=True)
class DppMax(Dpp):
    """Members with the largest determinant, one after another. [Kathuria2016, Theorem 3.3]."""

    def explore(self, kernel: RegionKernel, size: int, rng: np.random.Generator) -> IntArray:
        """Return the greedy maximum: each time the place that is known least."""
        return greedy_kdpp(kernel.entries, kernel.diagonal, size)


@dataclass(frozen=True)
class UcbDppMax(BySchedule, DppMax):
    """UCB-PE: the largest upper bound, then the least known of where the maximum may be.

    [Contal2013; Kathuria2016, Algorithm 2]
    """


@dataclass(frozen=True)
class EstDppMax(ByEstimate, DppMax):
    """EST-PE: as ucb_dpp_max, with the bounds of est. [Kathuria2016, Algorithm 2]."""
