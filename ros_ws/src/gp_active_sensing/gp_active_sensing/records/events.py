"""Events of the journal and records of stages: build them, and read them back.

=========  ========================================================================================
start      how the run was started: versions, seed
resumed    the same, in another process
state      a mission of nodes is running or paused from here on, and why
asked      a decision is being computed, of the readings so far; which other probes wait for one
unused     an answer without a waypoint, or one that came too late: asked again when that helps
decision   a plan, with the expansions spent and the state the policy left; ``again`` says that its
           place was observed already, and is to be read once more; what was ``left`` of the budget
moved      what the drive to the waypoint cost [m, s]
reading    a reading told to the loop; an average says of how many (``count``) and since when
           (``first_ns``), one that had been gated says why it counts after all (``taken_back``),
           one of several of a stay, or beside its place's point, what the belief holds of that
           stay from then on (``stay``)
expert     of a simulated mission: where its expert was asked, how long was waited, the answers used
query      where an expert is asked for values before the next decision
answer     an answer of an expert, told to the loop; ``late``: its decision had been taken before
gated      a reading set aside, and how far off it is [standard deviations]; it may come back
dropout    the sensor was asked and gave nothing
miss       a visit without any reading; ``again`` says whether the place is tried again
blocked    a place cannot be reached; when it may be chosen again
budget     what may be spent in all was changed
roster     a probe takes part, or does not any more, and why
status     where a probe is, how far it drove, what was not used so far
clock      the clock went forward by ``step_ns`` more than the time that passed; it is not charged
stopped    the process ended and the mission did not
gap        so many events before it could not be written, or not be read any more (``damaged``)
home       nothing more is chosen; the way to the end place, and why
end        why the mission ended
=========  ========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gp_active_sensing.errors import RunError
from gp_active_sensing.types import MEAN, Aim, Budget, CandidateValue, Cost, Plan, Reading

__all__ = [
    "aim_of",
    "answer_event",
    "asked_event",
    "average_of",
    "blocked_event",
    "budget_event",
    "budget_of",
    "clock_event",
    "cost_of",
    "decision_event",
    "end_event",
    "finite",
    "gap_event",
    "gated_event",
    "home_event",
    "home_of",
    "is_stage_record",
    "left_words",
    "miss_event",
    "moved_event",
    "plan_of",
    "query_event",
    "reading_event",
    "reading_of",
    "resumed_event",
    "roster_event",
    "stage_record",
    "start_event",
    "state_event",
    "status_event",
    "stopped_event",
    "unused_event",
]

_COUNTED = (
    ("plan_seconds", "expanded", "deadline_hit"),
    ("regret", "cumulative_regret", "recommended"),
)
"""Keys of a record that are counted over all stages: numbers; a record has all of a row or none."""


def start_event(**details: Any) -> dict[str, Any]:
    """Return the journal's first event."""
    return {"event": "start", **details}


def resumed_event(**details: Any) -> dict[str, Any]:
    """Return the journal's event of a mission that goes on in another process."""
    return {"event": "resumed", **details}


def status_event(probes: Mapping[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Return the journal's event of where the probes are and what of them was not used."""
    return {"event": "status", "probes": {k: dict(v) for k, v in probes.items()}, **more}


def reading_event(reading: Reading, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a reading told to the loop.

    A value that is not finite is kept as text ("nan"), since JSON has no word for it.
    """
    return {
        "event": "reading",
        "stamp_ns": int(reading.stamp_ns),
        "location": reading.location,
        "position": None if reading.position is None else list(reading.position),
        "value": reading.value,
        "noise_variance": reading.noise_variance,
        "source": reading.source,
        **more,
    }


def average_of(event: Mapping[str, Any], reading: Reading) -> tuple[Reading, int] | None:
    """Return what the belief holds of the stay of a reading, and of how many readings that is.

    None: it begins a stay, and counts as it came.

    Args:
        event: of the reading.
        reading: of the event.

    Raises:
        RunError: the event lacks something, or has the wrong type.
    """
    said = event.get("stay")
    if said is None:
        return None
    try:
        variance, off = said["noise_variance"], said["off"]
        average = replace(
            reading,
            value=float(said["value"]),
            noise_variance=None if variance is None else float(variance),
            off=None if off is None else float(off),
        )
        return average, int(said["count"])
    except (KeyError, TypeError, ValueError) as error:
        msg = f"journal: an event says nothing of a stay ({error!r}): {dict(event)}"
        raise RunError(msg) from error


def gated_event(reading: Reading, off: float) -> dict[str, Any]:
    """Return the journal's event of a reading that is set aside, `off` standard deviations off."""
    return {**reading_event(reading), "event": "gated", "off": off}


def reading_of(event: Mapping[str, Any]) -> Reading:
    """Return the reading of a journal event.

    Raises:
        RunError: the event lacks something, or has the wrong type.
    """
    try:
        position = event.get("position")
        variance = event.get("noise_variance")
        return Reading(
            stamp_ns=int(event["stamp_ns"]),
            location=None if event.get("location") is None else int(event["location"]),
            value=float(event["value"]),
            noise_variance=None if variance is None else float(variance),
            source=str(event.get("source", "")),
            position=None if position is None else (float(position[0]), float(position[1])),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        msg = f"journal: an event is not a reading ({error!r}): {dict(event)}"
        raise RunError(msg) from error


def decision_event(stage: int, plan: Plan, policy_state: Any, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a decision, whole enough to be taken again without planning."""
    return {
        "event": "decision",
        "stage": stage,
        "waypoints": list(plan.waypoints),
        "path": list(plan.path),
        "metres": plan.cost.metres,
        "seconds": plan.cost.seconds,
        "lower": plan.lower,
        "upper": plan.upper,
        "expanded": plan.expanded,
        "plan_seconds": plan.seconds,
        "deadline_hit": plan.deadline_hit,
        "horizon": plan.horizon,
        "candidates": [list(c) for c in plan.candidates],
        "policy_state": policy_state,
        **more,
    }


def plan_of(event: Mapping[str, Any]) -> Plan:
    """Return the plan of a ``decision`` event.

    Raises:
        RunError: the event lacks something, or has the wrong type.
    """
    try:
        return Plan(
            waypoints=tuple(int(w) for w in event["waypoints"]),
            lower=float(event["lower"]),
            upper=float(event["upper"]),
            expanded=int(event["expanded"]),
            seconds=finite(event, "plan_seconds"),
            deadline_hit=bool(event["deadline_hit"]),
            path=tuple(int(p) for p in event["path"]),
            cost=cost_of(event),
            horizon=int(event["horizon"]),
            candidates=tuple(
                CandidateValue(int(c), float(low), float(high))
                for c, low, high in event["candidates"]
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = f"journal: an event is not a decision ({error!r}): {dict(event)}"
        raise RunError(msg) from error


def cost_of(event: Mapping[str, Any]) -> Cost:
    """Return the metres and seconds of a journal event.

    Raises:
        KeyError, TypeError, ValueError: one of them is not there, or not a finite number.
    """
    return Cost(finite(event, "metres"), finite(event, "seconds"))


def finite(event: Mapping[str, Any], key: str) -> float:
    """Return a number of a journal event.

    Raises:
        KeyError, TypeError, ValueError: it is not there, or not a finite number.
    """
    number = float(event[key])
    if not math.isfinite(number):
        msg = f"{key}: expected a finite number, got {event[key]!r}"
        raise ValueError(msg)
    return number


def moved_event(cost: Cost, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a drive."""
    return {"event": "moved", "metres": cost.metres, "seconds": cost.seconds, **more}


def state_event(state: str, reason: str, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a mission that goes on or is paused."""
    return {"event": "state", "state": state, "reason": reason, **more}


def clock_event(step_ns: int, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a clock that went forward by more than the time that passed."""
    return {"event": "clock", "step_ns": int(step_ns), **more}


def asked_event(probe: str, at: int | None, pending: Sequence[int], **more: Any) -> dict[str, Any]:
    """Return the journal's event of a decision that begins to be computed."""
    return {"event": "asked", "probe": probe, "at": at, "pending": list(pending), **more}


def query_event(places: Sequence[int], **more: Any) -> dict[str, Any]:
    """Return the journal's event of a question to an expert."""
    return {"event": "query", "places": list(places), **more}


def answer_event(reading: Reading, **more: Any) -> dict[str, Any]:
    """Return the journal's event of an expert's answer that is used."""
    return {**reading_event(reading, **more), "event": "answer"}


def unused_event(probe: str, plan: Plan, **more: Any) -> dict[str, Any]:
    """Return the journal's event of an answer that nothing came of."""
    return {
        "event": "unused",
        "probe": probe,
        "waypoint": plan.waypoint,
        "reason": plan.reason,
        "expanded": plan.expanded,
        **more,
    }


def blocked_event(location: int, *, until_ns: int, why: str, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a place that cannot be reached."""
    return {
        "event": "blocked",
        "location": int(location),
        "until_ns": int(until_ns),
        "why": why,
        **more,
    }


def budget_event(budget: Budget, aim: Aim | None = None, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a budget that was changed; what was spent counts already."""
    error, of = (None, MEAN) if aim is None else (aim.error, aim.of)
    return {"event": "budget", **left_words(budget), "error": error, "error_of": of, **more}


def aim_of(event: Mapping[str, Any]) -> Aim | None:
    """Return the error at which the mission is over, of a ``budget`` event.

    Raises:
        RunError: it has the wrong type.
    """
    try:
        if event.get("error") is None:
            return None
        return Aim(finite(event, "error"), str(event["error_of"]))
    except (KeyError, TypeError, ValueError) as error:
        msg = f"journal: an event is not a budget ({error!r}): {dict(event)}"
        raise RunError(msg) from error


def left_words(budget: Budget) -> dict[str, float | None]:
    """Return how much a budget is, as `budget_of` reads it."""
    return {"readings": budget.readings, "metres": budget.metres, "seconds": budget.seconds}


def budget_of(event: Mapping[str, Any]) -> Budget:
    """Return the budget of a ``budget`` event.

    Raises:
        RunError: the event lacks something, or has the wrong type.
    """
    try:
        readings, metres, seconds = event["readings"], event["metres"], event["seconds"]
        return Budget(
            None if readings is None else int(readings),
            None if metres is None else finite(event, "metres"),
            None if seconds is None else finite(event, "seconds"),
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = f"journal: an event is not a budget ({error!r}): {dict(event)}"
        raise RunError(msg) from error


def roster_event(probe: str, why: str, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a probe that takes part (`why` is "") or does not any more."""
    return {"event": "roster", "probe": probe, "why": why, **more}


def gap_event(failures: int, **more: Any) -> dict[str, Any]:
    """Return the journal's event of what could not be written before it."""
    return {"event": "gap", "failures": int(failures), **more}


def stopped_event(reason: str, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a process that ends before its mission does."""
    return {"event": "stopped", "reason": reason, **more}


def miss_event(location: int, *, again: bool, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a visit without a reading."""
    return {"event": "miss", "location": int(location), "again": again, **more}


def home_event(plan: Plan, **more: Any) -> dict[str, Any]:
    """Return the journal's event of a last plan, which leads to the end place."""
    return {
        "event": "home",
        "reason": plan.reason,
        "path": list(plan.path),
        "metres": plan.cost.metres,
        "seconds": plan.cost.seconds,
        **more,
    }


def home_of(event: Mapping[str, Any]) -> Plan:
    """Return the plan of a ``home`` event.

    Raises:
        RunError: the event lacks something, or has the wrong type.
    """
    try:
        path = tuple(int(p) for p in event["path"])
        cost = cost_of(event)
        return Plan(
            (), 0.0, 0.0, 0, 0.0, deadline_hit=False, path=path, cost=cost, reason=event["reason"]
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = f"journal: an event is not a way home ({error!r}): {dict(event)}"
        raise RunError(msg) from error


def end_event(reason: str, **more: Any) -> dict[str, Any]:
    """Return the journal's event of the end of a mission."""
    return {"event": "end", "reason": reason, **more}


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
        position: (x, y) of the place [m].
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
