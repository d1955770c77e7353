r"""What S random draws per action guarantee, and how many a guarantee takes. [Hoang2014, Sec. 3.3].

For Experiment 1 of the paper (100 places, 7 length-scales, σ_o/σ_n = 40) and two stages, ten draws
promise nothing, and a loss of at most 1 nat takes six thousand million:

>>> from gp_active_sensing.planning.bal.sample_size import Planning, guarantee, samples_needed
>>> line = Planning(horizon=2, places=100, candidates=7, noise_ratio=40.0)
>>> print(guarantee(line, samples=10))
S = 10 draws per action: vacuous. The bound on the expected loss is 6.61e+04 nat, \
and no policy can lose more than 9.32 nat.
>>> needed = samples_needed(line, epsilon=1.0)
>>> f"{needed.samples:.1e}", needed.vacuous
('6.2e+09', False)

The theory is for the published draws (`discretisation: draws`) and a horizon as long as the budget.
Cells have no sampling error, and bounds of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bal.bounds import children_chain_rule, initial_bounds
from gp_active_sensing.planning.bal.problem import Problem
from gp_active_sensing.planning.bal.sequences import Sequence
from gp_active_sensing.planning.entropy import gaussian_entropy, noise_entropy
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import FloatArray

__all__ = [
    "Planning",
    "SampleSize",
    "guarantee",
    "measured_range",
    "planning_of",
    "samples_needed",
]
