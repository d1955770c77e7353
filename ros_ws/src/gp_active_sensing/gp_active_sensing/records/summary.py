"""Summary of a run, written as ``summary.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.link import AUTO, probability_of_link
from gp_active_sensing.belief.mixture import sum_by_scale
from gp_active_sensing.belief.promise import to_record
from gp_active_sensing.config import to_mapping
from gp_active_sensing.kernels import scale_unit
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.records.metrics import NO_SCORES, Scorer
from gp_active_sensing.records.regret import objective_of, regret_summary
from gp_active_sensing.util.process import versions

AGAINST = "the noise-free truth, over the places not observed"
AT_THE_END = "the noise-free truth as it was at the end, over the places not observed"


@dataclass(frozen=True, kw_only=True)
class RunCourse:
    """Outcome of a run: its status, distances, times and counts.

    Args:
        driver: sim (simulation), ros (ROS node) or replay.
        status: finished, interrupted, failed or running.
        reason: reason for the end.
        metres: driven distance [m].
        seconds: driving time of all probes together [s].
        probes: `name`, `metres` and `seconds` of each of several probes; () = a single probe.
        sorties: number of sorties of all probes; 0 = no battery is changed.
        unit: unit of the field and of the errors.
        rejected_by_reason: number of unused messages by reason.
        dropped: number of messages of each kind that a full inbox lost.
        dropouts: number of readings that the simulated sensor dropped; None on a robot.
        delays: estimated delay of the stamps of each probe. Keys: `seconds`, its standard `error`,
            the `evidence` for it [nat], and `set`, the configured delay.
        expert: number of ``questions``, and numbers of places: ``asked``, ``answered``,
            ``unanswered`` when the decision was made, ``used``, ``late`` and ``rejected_…``;
            {} = no expert.
        latency: median, p99 and max time from a message to its effect [ms]; {} in a simulation.
        run_dir: path of the records.
    """

    driver: str = "sim"
    status: str
    reason: str
    metres: float
    seconds: float
    probes: tuple[Mapping[str, Any], ...] = ()
    sorties: int = 0
    unit: str = ""
    rejected_by_reason: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    dropouts: int | None = None
    delays: tuple[Mapping[str, Any], ...] = ()
    expert: Mapping[str, Any] = field(default_factory=dict)
    latency: Mapping[str, Any] = field(default_factory=dict)
    run_dir: str


@dataclass(frozen=True, kw_only=True)
class RunSummary(RunCourse):
    """Summary of a run: outcome, progress, map and belief.

    Args:
        seed: seed of all random numbers.
        stages: number of executed decisions.
        places: number of places of the map.
        observed: number of places with a reading.
        readings: number of used readings.
        late: number of used readings that are older than a previous reading.
        rejected: number of unused messages, such as readings and poses.
        missed: number of visits to a waypoint without a reading.
        set_aside: names of the places that were dropped after visits without a reading.
        limits: counts for the limits: places ``open`` and ``closed``, closings, openings, and
            observed places beyond the limits (``read_beyond``); {} = no limits.
        planning: median, p99 and max planning time of a stage [s], and numbers of expansions and
            missed deadlines; {} = no stage.
        errors_against: words for the truth and the places that the scores use; "" = no truth.
        rmspe: root mean squared prediction error; None if every place is observed.
        nlpd: mean negative log predictive density [nat]; None if every place is observed.
        coverage_50, coverage_90, coverage_95: fraction of the true values at places not observed
            that are inside the belief's central intervals.
        reading_coverage_50, reading_coverage_90, reading_coverage_95: the same fractions for new
            readings.
        rmse: root mean squared error over all places, weighted by `map.weights`.
        promised_error: the belief's estimate of `rmse`, see `Belief.promise`; None = too few
            readings.
        promised_worst: largest standard deviation of the belief at a place.
        least_error: lower bound on `promised_error` for any route with `least_places` readings, see
            `Belief.floor`; None = not computed.
        least_places: number of readings that `least_error` assumes; None = not computed.
        explained: R² of the leave-one-place-out predictions; None = too few places, or readings
            lose weight with age.
        regret: see `regret_summary`; {} without a search or without a truth.
        length_scales: length-scale, kernel and final weight of each candidate, most probable first.
        scale_unit: unit of the length-scales; "" = none.
        quantities: `unit`, `observed`, `readings`, `late`, promised error and scores of each
            further quantity. A linked quantity also has `link_probability`.
    """

    scenario: str
    policy: str
    seed: int
    stages: int
    places: int
    observed: int
    readings: int
    late: int
    rejected: int
    missed: int
    set_aside: tuple[str, ...]
    limits: dict[str, int]
    planning: dict[str, float]
    versions: dict[str, str]
    errors_against: str
    rmspe: float | None
    nlpd: float | None
    coverage_50: float | None
    coverage_90: float | None
    coverage_95: float | None
    reading_coverage_50: float | None
    reading_coverage_90: float | None
    reading_coverage_95: float | None
    rmse: float | None
    promised_error: float | None
    promised_worst: float | None
    least_error: float | None
    least_places: int | None
    explained: float | None
    regret: dict[str, Any]
    length_scales: tuple[dict[str, Any], ...]
    scale_unit: str
    quantities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data; without further quantities, `quantities` is left out."""
        found = to_mapping(self)
        return found if self.quantities else {k: v for k, v in found.items() if k != "quantities"}


def summarise(
    config: Mapping[str, Any],
    loop: SensingLoop,
    records: Sequence[Mapping[str, Any]],
    course: RunCourse,
    scorer: Scorer | None = None,
    at_seconds: float = 0.0,
    further: Mapping[str, tuple[str, Scorer | None]] = MappingProxyType({}),
) -> RunSummary:
    """Return the summary of a mission so far.

    Args:
        config: content of ``config.yaml``.
        loop: the engine; no other thread may change it meanwhile.
        records: record of each stage.
        course: outcome of the run.
        scorer: comparison of the map with the truth; None = no truth.
        at_seconds: time of the scores, for a changing truth [s].
        further: unit and scores of each further quantity.
    """
    belief = loop.belief
    return RunSummary(
        **vars(course),
        **_quality(config, loop, records, course, scorer, at_seconds),
        scenario=str(config.get("name", "")),
        policy=str(config.get("policy", {}).get("name", "")),
        seed=int(config.get("seed", 0)),
        stages=len(records),
        places=loop.topology.n,
        observed=int(belief.observed.sum()),
        readings=loop.counts["accepted"],
        late=loop.counts["late"],
        rejected=sum(course.rejected_by_reason.values()),
        missed=loop.counts["missed"],
        set_aside=tuple(loop.topology.names[i] for i in sorted(loop.set_aside)),
        limits=loop.limit_figures(),
        planning=_planning(records),
        versions=versions(),
        length_scales=length_scale_weights(belief),
        scale_unit=scale_unit(loop.topology.feature_names, _kernels(config, belief)),
        quantities={
            name: _of_quantity(loop, name, *further.get(name, ("", None)), at_seconds)
            for name in loop.quantities
        },
    )


def _of_quantity(
    loop: SensingLoop, name: str, unit: str, scorer: Scorer | None, at_seconds: float
) -> dict[str, Any]:
    belief, weights = loop.quantities[name].belief, loop.topology.weights
    found = belief.mixture()
    scores: dict[str, Any] = {}
    link = probability_of_link(belief)
    if link or loop.quantities[name].link not in (None, AUTO):
        scores["link_probability"] = link
    if scorer is not None:
        error = scorer.error_everywhere(found.moments()[0], at_seconds, weights)
        scores |= {**scorer.of(belief, at_seconds, found), "rmse": error}
    return {
        "unit": unit,
        "observed": int(belief.observed.sum()),
        "readings": loop.counts[f"accepted_{name}"],
        "late": loop.counts[f"late_{name}"],
        **to_record(belief.promise(weights, found)),
        **scores,
    }


def _quality(
    config: Mapping[str, Any],
    loop: SensingLoop,
    records: Sequence[Mapping[str, Any]],
    course: RunCourse,
    scorer: Scorer | None,
    at_seconds: float,
) -> dict[str, Any]:
    belief, weights = loop.belief, loop.topology.weights
    found = belief.mixture()
    scores, error, against = NO_SCORES, None, ""
    regret: dict[str, Any] = {}
    if scorer is not None:
        truth = scorer.truth
        against = AT_THE_END if truth.changes else AGAINST
        scores = scorer.of(belief, at_seconds, found)
        error = scorer.error_everywhere(found.moments()[0], at_seconds, weights)
        objective = objective_of(loop.policy, config.get("seek"))
        regret = regret_summary(records, truth, loop.topology.names, objective, at_seconds)
    # Compute the bound only at the end of the mission, since it takes long.
    floor = belief.floor(weights) if course.status != "running" else None
    error_floor, places = (None, None) if floor is None else floor
    check = belief.leave_one_out()
    return {
        "errors_against": against,
        **scores,
        "rmse": error,
        **to_record(belief.promise(weights, found)),
        "least_error": error_floor,
        "least_places": places,
        "explained": None if check is None else check.explained,
        "regret": regret,
    }


def length_scale_weights(belief: Belief) -> tuple[dict[str, Any], ...]:
    """Return each candidate length-scale with its weight, most probable first.

    Weights of candidates that differ only in signal or noise are summed. Kernels with a name have
    separate entries.
    """
    candidates = zip(belief.hyperparameters, belief.weights, strict=True)
    total = sum_by_scale((h.kernel, h.length_scales, weight) for h, weight in candidates)
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        {**({"kernel": kernel} if kernel else {}), "length_scale": list(ell), "weight": weight}
        for (kernel, ell), weight in ordered
    )


def _kernels(config: Mapping[str, Any], belief: Belief) -> set[str]:
    names = {candidate.kernel for candidate in belief.hyperparameters}
    default_kernel = (config.get("belief") or {}).get("kernel")
    return {str(default_kernel)} if names == {""} and default_kernel is not None else names


def _planning(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    if not records:
        return {}
    seconds = np.array([float(record["plan_seconds"]) for record in records])
    return {
        "median_seconds": float(np.median(seconds)),
        "p99_seconds": float(np.percentile(seconds, 99)),
        "max_seconds": float(seconds.max()),
        "expansions": sum(int(record["expanded"]) for record in records),
        "deadlines_hit": sum(bool(record["deadline_hit"]) for record in records),
    }
