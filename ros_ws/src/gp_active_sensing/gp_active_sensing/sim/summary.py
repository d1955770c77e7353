"""What is left of a run in one object: ``summary.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import to_mapping
from gp_active_sensing.metrics import nlpd, rmse, rmspe
from gp_active_sensing.sim.mission import Mission
from gp_active_sensing.versions import versions

__all__ = ["RunSummary", "length_scale_weights", "summarise"]

AGAINST = "the noise-free truth, over the places not observed"


@dataclass(frozen=True)
class RunSummary:
    """How a run went.

    Args:
        scenario: its name.
        policy: name of the policy.
        seed: key of all draws.
        status: finished, interrupted or failed.
        reason: why it ended.
        stages: decisions carried out.
        places: number of places of the map.
        observed: places with a reading.
        readings: readings used.
        rejected: readings not used.
        dropouts: how often the sensor gave nothing.
        set_aside: names of the places given up after several visits without a reading.
        metres: distance driven.
        seconds: time driven.
        unit: unit of the field and of `rmspe` and `rmse`.
        errors_against: what `rmspe` and `nlpd` compare with.
        rmspe: root mean squared prediction error, None when every place is observed.
        nlpd: mean negative log predictive density [nat], None when every place is observed.
        rmse: root mean squared error over all places, observed ones included.
        length_scales: the candidates with their final weights, most probable first.
        planning: seconds of planning a stage (median, p99, max), expansions and missed deadlines.
        versions: what it was run with.
        run_dir: where the records are.
    """

    scenario: str
    policy: str
    seed: int
    status: str
    reason: str
    stages: int
    places: int
    observed: int
    readings: int
    rejected: int
    dropouts: int
    set_aside: tuple[str, ...]
    metres: float
    seconds: float
    unit: str
    errors_against: str
    rmspe: float | None
    nlpd: float | None
    rmse: float | None
    length_scales: tuple[dict[str, Any], ...]
    planning: dict[str, float]
    versions: dict[str, str]
    run_dir: str

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data."""
        return to_mapping(self)


def summarise(
    run_dir: Path,
    mission: Mission,
    records: Sequence[Mapping[str, Any]],
    status: str,
    reason: str = "",
) -> RunSummary:
    """Return the summary of a mission as far as it has come."""
    loop, world = mission.loop, mission.world
    belief = loop.belief
    mean, variance = belief.predict()
    observed = belief.observed
    return RunSummary(
        scenario=mission.scenario.name,
        policy=str(mission.scenario.policy["name"]),
        seed=mission.scenario.seed,
        status=status,
        reason=reason or mission.reason,
        stages=len(records),
        places=world.topology.n,
        observed=int(observed.sum()),
        readings=loop.counts["accepted"],
        rejected=sum(n for word, n in loop.counts.items() if word.startswith("rejected_")),
        dropouts=mission.dropouts,
        set_aside=tuple(world.topology.names[i] for i in sorted(loop.set_aside)),
        metres=mission.driven.metres,
        seconds=mission.driven.seconds,
        unit=mission.scenario.field.unit,
        errors_against=AGAINST,
        rmspe=rmspe(mean, world.truth, observed),
        nlpd=nlpd(mean, variance, world.truth, observed),
        rmse=rmse(mean, world.truth),
        length_scales=length_scale_weights(belief),
        planning=_planning(records),
        versions=versions(),
        run_dir=str(run_dir),
    )


def length_scale_weights(belief: Belief) -> tuple[dict[str, Any], ...]:
    """Return each candidate length-scale with its weight, most probable first.

    Candidates that differ in signal or noise only are added up.
    """
    total: dict[tuple[float, ...], float] = {}
    for candidate, weight in zip(belief.hyperparameters, belief.weights, strict=True):
        key = tuple(candidate.length_scales)
        total[key] = total.get(key, 0.0) + float(weight)
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return tuple({"length_scale": list(key), "weight": weight} for key, weight in ordered)


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
