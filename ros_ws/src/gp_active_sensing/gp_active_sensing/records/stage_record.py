"""Record of one stage, a line of ``records.jsonl``: build it, and tell whether it is whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gp_active_sensing.types import Plan

__all__ = ["is_stage_record", "stage_record"]

_COUNTED = (
    ("plan_seconds", "expanded", "deadline_hit"),
    ("regret", "cumulative_regret", "recommended"),
)
"""Keys of a record that are counted over all stages: numbers; a record has all of a row or none."""


def stage_record(
    *,
    stage: int,
    plan: Plan,
    name: str,
    position: Sequence[float],
    value: float | None,
    weights: Sequence[float],
    length_scales: Sequence[Sequence[float]] | None = None,
    kernels: Sequence[str] = (),
    plan_seconds: float | None = None,
    rmspe: float | None = None,
    nlpd: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the record of one stage: a decision and what came of it.

    Args:
        stage: 1 for the first decision.
        plan: the decision; its first waypoint is the place of the record.
        name: the map's name of the place.
        position: (x, y) of the place, or (x, y, z) on a map with heights [m].
        value: what was read there (mean of the visit), None when it was set aside.
        weights: (L,) the belief over the hyper-parameters after the reading.
        length_scales: (L,) those of each candidate, which may follow the readings.
        kernels: (L,) that of each candidate, where they have different ones; () or "" = no names.
        plan_seconds: planning time, when it is not the plan's own.
        rmspe: root mean squared prediction error over the places not observed yet, against the
            noise-free truth; None when there is no truth or no such place.
        nlpd: negative log predictive density over the same places; all scores compare with the
            truth at ``truth_seconds`` where the field changes.
        more: further keys, as they are.

    Raises:
        ValueError: a plan without a waypoint is not a stage.
    """
    if plan.waypoint is None:
        msg = f"stage {stage}: a plan without a waypoint has no record ({plan.reason})"
        raise ValueError(msg)
    return {
        "stage": stage,
        "location": plan.waypoint,
        "name": name,
        "position": [float(c) for c in position],
        "value": value,
        "weights": [float(w) for w in weights],
        "length_scales": None if length_scales is None else [list(s) for s in length_scales],
        **({"kernels": list(kernels)} if any(kernels) else {}),
        "lower": plan.lower,
        "upper": plan.upper,
        "expanded": plan.expanded,
        "plan_seconds": plan.seconds if plan_seconds is None else plan_seconds,
        "deadline_hit": plan.deadline_hit,
        "rmspe": rmspe,
        "nlpd": nlpd,
        "horizon": plan.horizon,
        "path": list(plan.path),
        "metres": plan.cost.metres,
        "seconds": plan.cost.seconds,
        "candidates": [list(c) for c in plan.candidates],
        **({"routes": [list(route) for route in plan.routes]} if plan.routes else {}),
        **more,
    }


def is_stage_record(item: Mapping[str, Any]) -> bool:
    """Whether a line of the records can be counted: it has its stage, and whole figures."""
    try:
        for keys in _COUNTED:
            there = [float(0 if item[k] is None else item[k]) for k in keys if k in item]
            if len(there) not in (0, len(keys)):
                return False
    except (TypeError, ValueError):
        return False
    return type(item.get("stage")) is int
