"""One trial as plain data: what a worker process is given, and what it hands back."""

from __future__ import annotations

import logging
import platform
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.experiments.plan import TrialSpec
from gp_active_sensing.experiments.trial import run_trial
from gp_active_sensing.records.metrics import SCORES
from gp_active_sensing.sim import scenario_from_mapping
from gp_active_sensing.types import Clock
from gp_active_sensing.util.process import commit, versions

__all__ = ["STAGE_KEYS", "Outcome", "do_trial", "failure_of"]

STAGE_KEYS = (
    "stage",
    "observed",
    "location",
    "value",
    "weights",
    "lower",
    "upper",
    "expanded",
    "plan_seconds",
    "deadline_hit",
    "rmspe",
    "nlpd",
    *SCORES[2:],
    "promised_error",
    "promised_worst",
    "driven_metres",
    "driven_seconds",
)
"""What is kept of a stage's record: not the candidates and paths, which would be most of it."""
WHERE_THERE = (
    "visits",
    "probe",
    "regret",
    "cumulative_regret",
    "recommended",
    "recommended_regret",
    "regret_bound",
    "expert_asked",
    "expert_used",
)
"""What is kept besides of records that have it."""


@dataclass(frozen=True)
class Outcome:
    """What became of a trial.

    Args:
        spec: the trial.
        item: a line for ``records.jsonl`` or ``failures.jsonl``.
        failed: it is the latter.
    """

    spec: TrialSpec
    item: Mapping[str, Any]
    failed: bool


def do_trial(
    spec: TrialSpec, *, source: str | None = None, clock: Clock = time.monotonic
) -> Outcome:
    """Run a trial; an error becomes a failure, so that the other trials go on.

    Args:
        spec: what to simulate; the stages depend on nothing else (but their planning times).
        source: commit for the record; None = that of the tree this process runs from.
        clock: monotonic seconds, for planning times.
    """
    started = clock()
    try:
        with _warnings() as warnings:
            trial = run_trial(scenario_from_mapping(spec.config), clock=clock)
    except Exception as error:
        return failure_of(spec, error)
    item = {
        "key": spec.key,
        **spec.labels(),
        "config": dict(spec.config),
        "commit": commit() if source is None else source,
        "versions": versions(),
        "platform": platform.platform(),
        "seconds": clock() - started,
        "reason": trial.reason,
        "warnings": list(warnings),
        "stages": [_kept(record) for record in trial.records],
    }
    return Outcome(spec, item, failed=False)


def _kept(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of the record of a stage."""
    found = {key: record[key] for key in STAGE_KEYS}
    return found | {key: record[key] for key in WHERE_THERE if key in record}


class _Collector(logging.Handler):
    """Keeps each message once, in the order they came."""

    def __init__(self, found: dict[str, None]) -> None:
        super().__init__(logging.WARNING)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found[record.getMessage()] = None


@contextmanager
def _warnings() -> Iterator[dict[str, None]]:
    """Collect what a mission warns of; a hundred missions would fill the screen with the same."""
    found: dict[str, None] = {}
    package = logging.getLogger("gp_active_sensing")
    before = package.handlers, package.propagate
    package.handlers, package.propagate = [_Collector(found)], False
    try:
        yield found
    finally:
        package.handlers, package.propagate = before


def failure_of(spec: TrialSpec, error: BaseException) -> Outcome:
    """Return the outcome of a trial that raised an error, or whose process ended."""
    item: dict[str, Any] = {
        "key": spec.key,
        **spec.labels(),
        "error": f"{type(error).__name__}: {error}",
    }
    if not isinstance(error, ActiveSensingError):  # a defect: where it happened is worth keeping
        item["traceback"] = "".join(traceback.format_exception(error))
    return Outcome(spec, {**item, "config": dict(spec.config)}, failed=True)
