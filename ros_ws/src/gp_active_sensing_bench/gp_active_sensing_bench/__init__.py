"""Experiments with many simulated missions: means, standard errors, paired differences.

>>> from gp_active_sensing_bench import load_experiment, run_experiment, summary
>>> experiment = load_experiment("bal_1d", seeds=4)
>>> loaded = run_experiment(experiment, "out", jobs=2)  # doctest: +SKIP
>>> summary(loaded.records, "rmspe", experiment.at).rows[0].cells  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing_bench.loading import load_experiment, read_experiment
    from gp_active_sensing_bench.metrics import METRICS
    from gp_active_sensing_bench.outputs import is_experiment, tables_of, write_outputs
    from gp_active_sensing_bench.plan import Experiment, ExperimentConfig, TrialSpec
    from gp_active_sensing_bench.records import ExperimentRecords, load_records
    from gp_active_sensing_bench.run import (
        Outcome,
        Progress,
        Trial,
        run_experiment,
        run_trial,
    )
    from gp_active_sensing_bench.tables import (
        Estimate,
        MetricTable,
        PolicyRow,
        differences,
        mean_of,
        summary,
    )

__all__ = [
    "METRICS",
    "Estimate",
    "Experiment",
    "ExperimentConfig",
    "ExperimentRecords",
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
        "loading": ("load_experiment", "read_experiment"),
        "metrics": ("METRICS",),
        "outputs": ("is_experiment", "tables_of", "write_outputs"),
        "plan": ("Experiment", "ExperimentConfig", "TrialSpec"),
        "records": ("ExperimentRecords", "load_records"),
        "run": ("Outcome", "Progress", "Trial", "run_experiment", "run_trial"),
        "tables": ("Estimate", "MetricTable", "PolicyRow", "differences", "mean_of", "summary"),
    },
)
