"""One member by its upper bound, the others by a DPP over where the maximum may be.

The set of largest determinant (UCB-PE, EST-PE) or a sample. [Contal2013; Kathuria2016]

"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gp_active_sensing.config import param
from gp_active_sensing.planning.batches.base import Batch, ByEstimate, BySchedule, Start
from gp_active_sensing.planning.batches.region import RegionKernel, region_of
from gp_active_sensing.planning.dpp import greedy_kdpp, sample_kdpp, sample_kdpp_mcmc
from gp_active_sensing.types import IntArray
from gp_active_sensing.util.ties import first_best

__all__ = ["Dpp", "EstDppMax", "EstDppSample", "UcbDppMax", "UcbDppSample"]


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


@dataclass(frozen=True)
class DppSample(Dpp):
    """Members drawn together, ``Pr(S) ∝ det L_S``: diverse, but not always the same."""

    exact_up_to: int = param(
        500,
        help="largest relevance region that is drawn from exactly, by eigenvalues; beyond it by a "
        "Markov chain, which never forms the kernel",
        unit="places",
        low=0,
    )
    epsilon: float = param(
        0.01,
        help="Markov chain: distance in total variation from the exact distribution",
        above=0.0,
        high=0.999,
    )

    def explore(self, kernel: RegionKernel, size: int, rng: np.random.Generator) -> IntArray:
        """Return a sample."""
        entries, diagonal = kernel.entries, kernel.diagonal
        if diagonal.size <= self.exact_up_to:
            return sample_kdpp(entries, diagonal, size, rng)
        return sample_kdpp_mcmc(entries, diagonal, size, rng, epsilon=self.epsilon)


@dataclass(frozen=True)
class UcbDppSample(BySchedule, DppSample):
    """The largest upper bound, then a sample of diverse places where the maximum may be.

    [Kathuria2016, Theorem 3.4]
    """


@dataclass(frozen=True)
class EstDppSample(ByEstimate, DppSample):
    """As ucb_dpp_sample, with the bounds of est. [Kathuria2016, Theorem 3.4]."""
