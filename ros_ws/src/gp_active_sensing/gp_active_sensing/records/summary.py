"""Summary of a run in one object, written as ``summary.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.promise import to_record
from gp_active_sensing.config import to_mapping
from gp_active_sensing.kernels import scale_unit
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.records.metrics import NO_SCORES, Scorer
from gp_active_sensing.records.regret import objective_of, regret_summary
from gp_active_sensing.types import Cost, FloatArray
from gp_active_sensing.util.process import versions

__all__ = ["RunSummary", "length_scale_weights", "summarise"]

AGAINST = "the noise-free truth, over the places not observed"
AT_THE_END = "the noise-free truth as it was at the end, over the places not observed"
RUNNING = "running"
_REJECTED = "rejected_"


@dataclass(frozen=True)
class RunSummary:
    """How a run went.

    Args:
        scenario: its name.
        policy: name of the policy.
        seed: key of all draws.
        driver: who drove: simulation (sim) or the ROS node (ros).
        status: finished, interrupted, failed, or running while it goes on.
        reason: why it ended.
        stages: decisions carried out.
        places: number of places of the map.
        observed: places with a reading.
        readings: readings used.
        late: of these, readings older than one before them.
        rejected: messages not used (readings, and poses that could not be).
        rejected_by_reason: the same by the word of the reason.
        dropped: messages of each kind lost because they came faster than they were taken in.
        dropouts: how often the sensor gave nothing; None on a robot, which is not told.
        missed: visits to a waypoint without a reading.
        set_aside: names of the places given up after several visits without a reading.
        metres: distance driven.
        seconds: time driven, by all probes together.
        probes: of several probes the `name`, `metres` and `seconds` driven of each; () for one.
        unit: unit of the field and of `rmspe` and `rmse`.
        errors_against: what the scores compare with; "" without a truth.
        rmspe: root mean squared prediction error, None when every place is observed.
        nlpd: mean negative log predictive density [nat], None when every place is observed.
        coverage_50, coverage_90, coverage_95: share of the true values at places not observed that
            are inside the belief's central intervals.
        reading_coverage_50, reading_coverage_90, reading_coverage_95: the same for new readings
            there.
        rmse: root mean squared error over all places, observed ones included, by `map.weights`.
        promised_error: what the belief promises of that, see `Belief.promise`; None while too few
            readings have come.
        promised_worst: standard deviation of the place of which least is known.
        least_error: what nobody could promise less than with as many places read, see `floor`;
            None where that is not worked out.
        least_places: how many these are; None with `least_error`.
        explained: share of the variance of the places' average readings that the readings of the
            other places explain; 0 or less: no better than a constant; None with too few places,
            or where readings age.
        regret: how far the search for the largest or smallest value stayed behind, see
            `regret_summary`; {} where nothing is looked for, or the truth is not known.
        length_scales: the candidates with their final weights, most probable first; of a belief
            over kernels each with its kernel.
        scale_unit: of the length-scales; "" where they have none.
        planning: seconds of planning a stage (median, p99, max), expansions and missed deadlines;
            {} without a stage.
        delays: by how much the stamps of the readings are too late, of each probe of which that was
            found: `seconds`, standard `error`, `evidence` [nat], and what was `set`.
        expert: what the questions to an expert came to (places asked, answered and unanswered when
            the decision was taken, answers used, of these late, rejected by reason); {} without.
        latency: milliseconds from a message to what it brings about (median, p99, max); {} in
            simulation without messages.
        versions: what it was run with.
        run_dir: where the records are.
    """

    scenario: str
    policy: str
    seed: int
    driver: str
    status: str
    reason: str
    stages: int
    places: int
    observed: int
    readings: int
    late: int
    rejected: int
    rejected_by_reason: dict[str, int]
    dropped: dict[str, int]
    dropouts: int | None
    missed: int
    set_aside: tuple[str, ...]
    metres: float
    seconds: float
    probes: tuple[dict[str, Any], ...]
    unit: str
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
    planning: dict[str, float]
    delays: tuple[dict[str, Any], ...]
    expert: dict[str, Any]
    latency: dict[str, Any]
    versions: dict[str, str]
    run_dir: str

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data."""
        return to_mapping(self)


def summarise(
    config: Mapping[str, Any],
    loop: SensingLoop,
    records: Sequence[Mapping[str, Any]],
    *,
    status: str,
    reason: str,
    driven: Cost,
    run_dir: Path | str,
    driver: str = "sim",
    scorer: Scorer | None = None,
    at_seconds: float = 0.0,
    unit: str = "",
    rejected: Mapping[str, int] | None = None,
    dropped: Mapping[str, int] | None = None,
    dropouts: int | None = None,
    latency: Mapping[str, Any] | None = None,
    expert: Mapping[str, Any] | None = None,
    delays: Sequence[Mapping[str, Any]] = (),
    probes: Sequence[Mapping[str, Any]] = (),
) -> RunSummary:
    """Return the summary of a mission as far as it has come.

    Args:
        config: as in ``config.yaml``.
        loop: the engine; nobody else may change it meanwhile.
        records: one a stage.
        status: see `RunSummary`.
        reason: why it ended.
        driven: since the mission began.
        run_dir: where the records are.
        driver: who drove.
        scorer: compares the map with the truth where that is known.
        at_seconds: when it is compared with, for one that changes [s].
        unit: of the field.
        rejected: counts by reason; None = the loop's own.
        dropped: see `RunSummary`.
        dropouts: see `RunSummary`.
        latency: see `RunSummary`.
        expert: see `RunSummary`.
        delays: see `RunSummary`.
        probes: see `RunSummary`.
    """
    belief, names = loop.belief, loop.topology.names
    observed = belief.observed
    if rejected is None:
        counts = loop.counts.items()
        rejected = {w.removeprefix(_REJECTED): n for w, n in counts if w.startswith(_REJECTED)}
    scores, error = NO_SCORES, None
    against = ""
    counted = loop.topology.weights
    found = belief.mixture()
    regret: dict[str, Any] = {}
    if scorer is not None:
        truth = scorer.truth
        against = AT_THE_END if truth.changes else AGAINST
        scores = scorer.of(belief, at_seconds, found)
        error = scorer.error_everywhere(found.moments()[0], at_seconds, counted)
        objective = objective_of(loop.policy, config.get("seek"))
        regret = regret_summary(records, truth, names, objective, at_seconds)
    return RunSummary(
        scenario=str(config.get("name", "")),
        policy=str(config.get("policy", {}).get("name", "")),
        seed=int(config.get("seed", 0)),
        driver=driver,
        status=status,
        reason=reason,
        stages=sum("plan_seconds" in record for record in records),
        places=loop.topology.n,
        observed=int(observed.sum()),
        readings=loop.counts["accepted"],
        late=loop.counts["late"],
        rejected=sum(rejected.values()),
        rejected_by_reason=dict(rejected),
        dropped=dict(dropped or {}),
        dropouts=dropouts,
        missed=loop.counts["missed"],
        set_aside=tuple(names[i] for i in sorted(loop.set_aside)),
        metres=driven.metres,
        seconds=driven.seconds,
        probes=tuple(dict(probe) for probe in probes),
        unit=unit,
        errors_against=against,
        **scores,
        rmse=error,
        **to_record(belief.promise(counted, found)),
        **_least(belief, counted, over=status != RUNNING),
        explained=_explained(belief),
        regret=regret,
        length_scales=length_scale_weights(belief),
        scale_unit=scale_unit(loop.topology.feature_names, _kernels(config, belief)),
        planning=_planning(records),
        delays=tuple(dict(delay) for delay in delays),
        expert=dict(expert or {}),
        latency=dict(latency or {}),
        versions=versions(),
        run_dir=str(run_dir),
    )


def _least(belief: Belief, weights: FloatArray, *, over: bool) -> dict[str, Any]:
    """Return what nobody could promise less than; nothing while the mission goes on."""
    floor = belief.floor(weights) if over else None
    error, places = (None, None) if floor is None else floor
    return {"least_error": error, "least_places": places}


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
    said = (config.get("belief") or {}).get("kernel")
    return {str(said)} if names == {""} and said is not None else names


def _explained(belief: Belief) -> float | None:
    """Return what the readings tell of each other, see `RunSummary`."""
    found = belief.leave_one_out()
    return None if found is None else found.explained


def _planning(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    records = [record for record in records if "plan_seconds" in record]
    if not records:  # a replay without decisions has records of places only
        return {}
    seconds = np.array([float(record["plan_seconds"]) for record in records])
    return {
        "median_seconds": float(np.median(seconds)),
        "p99_seconds": float(np.percentile(seconds, 99)),
        "max_seconds": float(seconds.max()),
        "expansions": sum(int(record["expanded"]) for record in records),
        "deadlines_hit": sum(bool(record["deadline_hit"]) for record in records),
    }
