"""Sets of k items drawn, or chosen, with probability proportional to a kernel's determinant.

A k-DPP over m items with the positive semi-definite kernel L has ``Pr(S) = det L_S / e_k(L)`` for
|S| = k, where e_k sums the determinants of all sets of that size. Kernels come as a function that
returns the entries it is asked for, so that the full matrix is formed only where it is small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.planning.dpp.exact import sample_kdpp
    from gp_active_sensing.planning.dpp.greedy import greedy_kdpp
    from gp_active_sensing.planning.dpp.kernel import Entries, entries_of
    from gp_active_sensing.planning.dpp.mcmc import mixing_steps, sample_kdpp_mcmc

__all__ = [
    "Entries",
    "entries_of",
    "greedy_kdpp",
    "mixing_steps",
    "sample_kdpp",
    "sample_kdpp_mcmc",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "exact": ("sample_kdpp",),
        "greedy": ("greedy_kdpp",),
        "kernel": (
            "Entries",
            "entries_of",
        ),
        "mcmc": (
            "mixing_steps",
            "sample_kdpp_mcmc",
        ),
    },
)
