"""Metrics of a trial's record. ``experiments/README.md`` describes all metrics.

A metric is computed after the first stage with a given number of readings. This number counts the
observed places. For a policy that may choose observed places again, it counts the visits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import UnknownNameError, suggest
from gp_active_sensing.records.metrics import SCORES

Record = Mapping[str, Any]
Stages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Metric:
    """Metric of a trial.

    Args:
        name: name in an experiment's file.
        label: text in figures and tables.
        unit: unit of the value; "field" = unit of the readings.
        value: function that computes the value from a record and the first stages of the record.
        quantity: name of the metric's quantity; "" = the main quantity, or all quantities.
    """

    name: str
    label: str
    unit: str
    value: Callable[[Record, Stages], float | None]
    quantity: str = ""

    def of(self, record: Record, readings: int) -> float | None:
        """Return the value after the first stage with `readings` readings; None = no value."""
        stages = stages_until(record, readings)
        if stages and self.quantity:
            stages = [stage.get("quantities", {}).get(self.quantity, {}) for stage in stages]
        value = None if stages is None else self.value(record, stages)
        return None if value is None or not math.isfinite(value) else value

    def unit_of(self, record: Record) -> str:
        """Return the unit of the value, such as degC."""
        if self.unit != "field":
            return self.unit
        config: Mapping[str, Any] = record["config"]
        own = config.get("quantities", {}).get(self.quantity, config)
        return str(own.get("field", {}).get("unit", ""))


def stages_until(record: Record, readings: int) -> Stages | None:
    """Return the stages until a number of readings is reached; None = never reached.

    The number counts observed places, or visits for a policy that may choose observed places again.
    """
    stages: Stages = record["stages"]
    for number, stage in enumerate(stages, start=1):
        if stage.get("visits", stage["observed"]) >= readings:
            return stages[:number]
    return None


def metric_of(name: str) -> Metric:
    """Return a metric by name. ``rmspe.depth`` is the metric ``rmspe`` of the quantity depth.

    Raises:
        UnknownNameError: no metric has this name.
    """
    word, _, quantity = name.partition(".")
    if word not in METRICS:
        msg = f"unknown metric {word!r}.{suggest(word, METRICS)} Known: {', '.join(METRICS)}"
        raise UnknownNameError(msg)
    found = METRICS[word]
    if not quantity:
        return found
    return replace(found, name=name, label=f"{found.label}, {quantity}", quantity=quantity)


def metrics_of(names: Sequence[str], records: Sequence[Record]) -> tuple[str, ...]:
    """Return `names` completed by metrics of each quantity in the records.

    With several quantities, metrics of the map are added for each quantity. The relative error is
    added for each quantity and for all quantities together.
    """
    further = dict.fromkeys(q for r in records for q in r["config"].get("quantities", {}))
    if not further:
        return tuple(names)
    every = dict.fromkeys(q for r in records for s in r["stages"] for q in s.get("quantities", {}))
    found = [
        name
        for metric in dict.fromkeys((RELATIVE, *names))
        for name in (metric, *(f"{metric}.{q}" for q in further if metric in _OF_MAPS))
    ]
    found[1:1] = [f"{RELATIVE}.{q}" for q in every]
    return tuple(found)


def true_weight_indices(scenario: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the indices of the belief's candidates that have the true length-scale.

    `scenario` is a complete mapping. The result is () if the field has no true length-scale.
    """
    field, belief = scenario["field"], scenario["belief"]
    if field["kind"] != "gp" or belief.get("model") or belief["length_scales"] is None:
        return ()  # candidates adapt to the readings
    config = from_mapping(BeliefConfig, belief)
    if config.kernel_names != (field["kernel"],):
        return ()
    each = len(config.parts())
    truth = _scales(field["length_scale"])
    return tuple(
        number * each + within
        for number, scale in enumerate(belief["length_scales"])
        if _same(_scales(scale), truth)
        for within in range(each)
    )


def _scales(value: Any) -> tuple[float, ...]:
    return tuple(float(v) for v in value) if isinstance(value, list | tuple) else (float(value),)


def _same(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    """Return whether length-scales are equal. A single length-scale applies to all features."""
    fit = len({len(first), len(second)} - {1}) < 2
    return fit and np.allclose(first, second, rtol=1e-9, atol=0.0)


def _last(key: str) -> Callable[[Record, Stages], float | None]:
    def value(record: Record, stages: Stages) -> float | None:
        found = stages[-1].get(key)
        return None if found is None else float(found)

    return value


def _mean(of: Callable[[Mapping[str, Any]], float]) -> Callable[[Record, Stages], float | None]:
    def value(record: Record, stages: Stages) -> float | None:
        return sum(of(stage) for stage in stages) / len(stages)

    return value


def _regrets(stages: Stages) -> list[float]:
    return [float(s["regret"]) for s in stages if s.get("regret") is not None]


def _average_regret(record: Record, stages: Stages) -> float | None:
    found = _regrets(stages)
    return sum(found) / len(found) if found else None


def _answers(record: Record, stages: Stages) -> float | None:
    found = [float(s["expert_used"]) for s in stages if s.get("expert_used") is not None]
    return sum(found) if found else None


def _true_weight(record: Record, stages: Stages) -> float | None:
    indices = true_weight_indices(record["config"])
    weights = stages[-1]["weights"]
    return sum(float(weights[i]) for i in indices) if indices else None


RELATIVE = "relative_error"
_OF_MAPS = ("promised_error", *SCORES)

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("rmspe", "RMSPE", "field", _last("rmspe")),
        Metric("nlpd", "NLPD", "nat", _last("nlpd")),
        Metric(RELATIVE, "Relative error", "", _last(RELATIVE)),
        Metric("promised_error", "Promised error", "field", _last("promised_error")),
        *(
            Metric(f"{key}_{level}", f"{what} in {level} % intervals", "", _last(f"{key}_{level}"))
            for key, what in (("coverage", "Truth"), ("reading_coverage", "Readings"))
            for level in (50, 90, 95)
        ),
        Metric("true_weight", "Belief on the true length-scale", "", _true_weight),
        Metric(
            "plan_seconds", "Planning time a stage", "s", _mean(lambda s: float(s["plan_seconds"]))
        ),
        Metric(
            "total_plan_seconds",
            "Planning time in all",
            "s",
            lambda _, stages: sum(float(s["plan_seconds"]) for s in stages),
        ),
        Metric("expanded", "Expansions a stage", "", _mean(lambda s: float(s["expanded"]))),
        Metric(
            "gap",
            "Gap of the bounds a stage",
            "nat",
            _mean(lambda s: float(s["upper"]) - float(s["lower"])),
        ),
        Metric("driven_metres", "Distance driven", "m", _last("driven_metres")),
        Metric("average_regret", "Average regret", "field", _average_regret),
        Metric("cumulative_regret", "Cumulative regret", "field", _last("cumulative_regret")),
        Metric(
            "simple_regret",
            "Regret of the best stage",
            "field",
            lambda _, stages: min(_regrets(stages), default=None),
        ),
        Metric(
            "recommended_regret",
            "Regret of the recommended place",
            "field",
            _last("recommended_regret"),
        ),
        Metric("regret_bound", "Bound on the regret", "field", _last("regret_bound")),
        Metric("expert_answers", "Answers of the expert", "", _answers),
    )
}
"""Metrics by name, in the order of the table in ``experiments/README.md``."""
