"""One member by its upper bound, the others drawn from a DPP. [Kathuria2016, Sec. 3.3]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.config import param
from gp_active_sensing.planning.batches.confidence import ByEstimate, BySchedule
from gp_active_sensing.planning.batches.dpp_max import Dpp
from gp_active_sensing.planning.batches.region_kernel import RegionKernel
from gp_active_sensing.planning.dpp import sample_kdpp, sample_kdpp_mcmc
from gp_active_sensing.types import IntArray

__all__ = ["EstDppSample", "UcbDppSample"]


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
