"""Summary of a run in one object, written as ``summary.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.link import AUTO, probability_of_link
from gp_active_sensing.belief.promise import to_record
from gp_active_sensing.config import to_mapping
from gp_active_sensing.kernels import scale_unit
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.records.metrics import NO_SCORES, Scorer
from gp_active_sensing.records.regret import objective_of, regret_summary
from gp_active_sensing.util.process import versions

AGAINST = "the noise-free truth, over the places not observed"
AT_THE_END = "the noise-free truth as it was at the end, over the places not observed"
RUNNING = "running"


@dataclass(frozen=True, kw_only=True)
class RunCourse:
    """Course of a run, as its driver knows it.

    Args:
        driver: simulation (sim), ROS node (ros) or replay.
        status: finished, interrupted, failed, or running while it goes on.
        reason: why it ended.
        metres: distance driven.
        seconds: time driven, by all probes together.
        probes: of several probes the `name`, `metres` and `seconds` driven of each; () for one.
        sorties: of all probes together; 0 where no battery is changed.
        unit: unit of the field and of the errors.
        rejected_by_reason: messages not used, by the word of the reason.
        dropped: messages of each kind lost because they came faster than they were taken in.
        dropouts: how often the sensor gave nothing; None on a robot, which is not told.
        delays: delay of the stamps of each probe for which one was found: `seconds`, standard
            `error`, `evidence` [nat], and the value `set`.
        expert: questions to an expert (places asked, answered and unanswered when the decision was
            taken, answers used, of these late, rejected by reason); {} without.
        latency: milliseconds from a message to its effect (median, p99, max); {} in simulation
            without messages.
        run_dir: where the records are.
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
    """Summary of a run: its course, progress, map and belief.

    Args:
        scenario: its name.
        policy: name of the policy.
        seed: key of all draws.
        stages: decisions carried out.
        places: number of places of the map.
        observed: places with a reading.
        readings: readings used.
        late: of these, readings older than one before them.
        rejected: messages not used (readings, and poses that could not be).
        missed: visits to a waypoint without a reading.
        set_aside: names of the places given up after several visits without a reading.
        limits: numbers of places ``open`` and ``closed`` by the limits, how often one was closed
            and opened, and of places whose readings lie beyond (``read_beyond``); {} without.
        planning: seconds of planning a stage (median, p99, max), expansions and missed deadlines;
            {} without a stage.
        versions: of the package and its libraries.
        errors_against: what the scores compare with; "" without a truth.
        rmspe: root mean squared prediction error, None when every place is observed.
        nlpd: mean negative log predictive density [nat], None when every place is observed.
        coverage_50, coverage_90, coverage_95: share of the true values at places not observed that
            are inside the belief's central intervals.
        reading_coverage_50, reading_coverage_90, reading_coverage_95: the same for new readings
            there.
        rmse: root mean squared error over all places, observed ones included, by `map.weights`.
        promised_error: the belief's estimate of `rmse`, see `Belief.promise`; None while too few
            readings have come.
        promised_worst: largest standard deviation of a place.
        least_error: lower bound of `promised_error` for any route with as many places read, see
            `Belief.floor`; None where that is not computed.
        least_places: number of these places; None with `least_error`.
        explained: share of the variance of the places' average readings that the readings of the
            other places explain; 0 or less: no better than a constant; None with too few places,
            or where readings age.
        regret: regret of the search for the largest or smallest value, see `regret_summary`; {}
            without such a search or without a truth.
        length_scales: the candidates with their final weights, most probable first; of a belief
            over kernels each with its kernel.
        scale_unit: of the length-scales; "" where they have none.
        quantities: of the further quantities by name: `unit`, `observed`, `readings`, `late`, the
            promise and, where the truth is known, the scores. Of a linked one `link_probability`,
            which the readings give to the link.
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
        """Return plain data; `quantities` is there where there are further ones."""
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
    """Return the summary of a mission as far as it has come.

    Args:
        config: as in ``config.yaml``.
        loop: the engine; nobody else may change it meanwhile.
        records: one a stage.
        course: given by the driver.
        scorer: compares the map with the truth where that is known.
        at_seconds: time at which they are compared, for a truth that changes [s].
        further: unit of each further quantity, and what compares its map with the truth.
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
    # The bound takes long; it is worked out when the mission is over.
    floor = belief.floor(weights) if course.status != RUNNING else None
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

    Candidates that differ in signal or noise only are added up. Those of a belief over kernels have
    their kernel with them.
    """
    total: dict[tuple[str, tuple[float, ...]], float] = {}
    for candidate, weight in zip(belief.hyperparameters, belief.weights, strict=True):
        key = candidate.kernel, tuple(candidate.length_scales)
        total[key] = total.get(key, 0.0) + float(weight)
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        {**({"kernel": kernel} if kernel else {}), "length_scale": list(ell), "weight": weight}
        for (kernel, ell), weight in ordered
    )


def _kernels(config: Mapping[str, Any], belief: Belief) -> set[str]:
    """Return the names of the kernels; those of the configuration where candidates have none."""
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
