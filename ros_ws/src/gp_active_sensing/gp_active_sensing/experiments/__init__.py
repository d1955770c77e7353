"""Many runs in memory, and what their records say: means, standard errors, paired differences."""

from __future__ import annotations

from gp_active_sensing.experiments.statistics import Estimate, mean_of, paired_difference
from gp_active_sensing.experiments.trial import Trial, run_trial

__all__ = ["Estimate", "Trial", "mean_of", "paired_difference", "run_trial"]
