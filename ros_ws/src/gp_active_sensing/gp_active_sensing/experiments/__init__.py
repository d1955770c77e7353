"""Many runs at once, and what their records say: means, standard errors, paired differences.

From Python, as from the command line:

    >>> from gp_active_sensing.experiments import load_experiment, run_experiment, summary
    >>> experiment = load_experiment("bal_1d", seeds=4)
    >>> loaded = run_experiment(experiment, "out", jobs=2)  # doctest: +SKIP
    >>> summary(loaded.records, "rmspe", experiment.at).rows[0].cells  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.experiments.config import ExperimentConfig
    from gp_active_sensing.experiments.loading import load_experiment, read_experiment
    from gp_active_sensing.experiments.metrics import METRICS
    from gp_active_sensing.experiments.outputs import is_experiment, tables_of, write_outputs
    from gp_active_sensing.experiments.plan import Experiment, TrialSpec
    from gp_active_sensing.experiments.records import Loaded, load_records
    from gp_active_sensing.experiments.run import Progress, run_experiment
    from gp_active_sensing.experiments.tables import (
        Estimate,
        MetricTable,
        PolicyRow,
        differences,
        mean_of,
        paired_difference,
        summary,
    )
    from gp_active_sensing.experiments.trial import Trial, run_trial
    from gp_active_sensing.experiments.work import Outcome

__all__ = [
    "METRICS",
    "Estimate",
    "Experiment",
    "ExperimentConfig",
    "Loaded",
    "MetricTable",
    "Outcome",
    "PolicyRow",
    "Progress",
    "Trial",
    "TrialSpec",
    "differences",
    "is_experiment",
    "load_experiment",
    "load_records",
    "mean_of",
    "paired_difference",
    "read_experiment",
    "run_experiment",
    "run_trial",
    "summary",
    "tables_of",
    "write_outputs",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "config": ("ExperimentConfig",),
        "loading": (
            "load_experiment",
            "read_experiment",
        ),
        "metrics": ("METRICS",),
        "outputs": (
            "is_experiment",
            "tables_of",
            "write_outputs",
        ),
        "plan": (
            "Experiment",
            "TrialSpec",
        ),
        "records": (
            "Loaded",
            "load_records",
        ),
        "run": (
            "Progress",
            "run_experiment",
        ),
        "tables": (
            "Estimate",
            "mean_of",
            "paired_difference",
            "PolicyRow",
            "MetricTable",
            "differences",
            "summary",
        ),
        "trial": (
            "Trial",
            "run_trial",
        ),
        "work": ("Outcome",),
    },
)
