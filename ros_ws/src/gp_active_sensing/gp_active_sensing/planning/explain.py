"""Sentences that explain why a place was chosen, and what the visit measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.planning import policies
from gp_active_sensing.planning.base import ExplainingPolicy
from gp_active_sensing.types import CandidateValue, Plan
from gp_active_sensing.util.wording import brief

_SAME = 1e-9
"""Difference up to which two values count as equal [unit of the policy's values]."""


def why(plan: Plan, names: Sequence[str], policy: str) -> str:
    """Return the policy's own explanation of a plan, or one that compares the candidates.

    Args:
        plan: plan with a waypoint.
        names: (n,) names of the places.
        policy: name of the policy; "" = unknown.
    """
    cls, unit = _class_of(policy), value_unit(policy)
    if isinstance(cls, ExplainingPolicy):
        return cls.explain(plan, names)
    place = plan.waypoints[0]
    chosen = next((c for c in plan.candidates if c.location == place), None)
    if chosen is None:
        return f"Chosen by {policy or 'the policy'}: {called(names[place])}; no values were kept."
    others = [c for c in plan.candidates if c.location != place]
    rival = max(others, key=lambda c: c.upper, default=None)
    digits = _digits(chosen, rival)
    worth = f"worth {_range(chosen, digits)}{_unit(unit)}"
    if plan.horizon > 1:
        worth += f" over {plan.horizon} readings"
    start = f"Chosen: {called(names[place])}"
    if rival is None:
        return f"{start}, the only place that could be next, {worth}."
    other = called(names[rival.location])
    if _exact(chosen) and _exact(rival) and _range(chosen, digits) == _range(rival, digits):
        about = "" if abs(rival.upper - chosen.upper) <= _SAME else f" to {digits} decimals"
        return f"{start}, {worth}: a tie with {other}{about}."
    if rival.upper <= chosen.lower + _SAME:
        most = "" if _exact(rival) else "at most "
        best = f"the best other place, {other}, is worth {most}{_figure(rival.upper, digits)}"
        return f"{start}, {worth}; {best}."
    may = f"{other} may be worth up to {_figure(rival.upper, digits)}"
    if plan.deadline_hit:
        return f"{start}, {worth}; {may}: the limit ended the search before the choice was certain."
    if _exact(chosen) and _exact(rival):  # several probes chose together
        least = f"{other} is worth {_figure(rival.upper, digits)}"
        return f"{start}, {worth}, for what it tells beside the other probes; {least}."
    within = f"{rival.upper - chosen.lower:.2g}{_unit(unit)}"
    return f"{start}, {worth}; {may}: the choice is within {within} of the best, near enough."


def on_route(start: str, plan: Plan, names: Sequence[str]) -> str:
    """Return `start`, followed by the next place of a route and the number of later places."""
    more = len(plan.waypoints) - 1
    after = f"; {more} more to read after it" if more else ""
    return f"{start}: {called(names[plan.waypoints[0]])}{after}"


def value_unit(policy: str) -> str:
    """Return the unit of a policy's values, given the policy's name; "" = unknown."""
    return str(getattr(_class_of(policy), "unit", ""))


def gap_of(policy: str, lower: float, upper: float) -> float | None:
    """Return the gap between the bounds on a decision's value; None for a policy without bounds."""
    bounded = upper > lower or getattr(_class_of(policy), "bounded", False)
    return upper - lower if bounded else None


def _class_of(policy: str) -> object:
    try:
        return policies.factory(policy)
    except ActiveSensingError:
        return None


def outcome(
    expected: tuple[float, float] | None,
    value: float | None,
    unit: str = "",
    *,
    set_aside: bool = False,
    blocked: str = "",
) -> str:
    """Return a sentence with the predicted and the actual value of a reading.

    Args:
        expected: predicted mean and standard deviation of the reading.
        value: mean reading of the visit; None = no reading.
        unit: unit of the field.
        set_aside: True if the place was set aside without a reading.
        blocked: why the probe could not reach the place; "" = the place was reachable.
    """
    if value is not None:
        came = f"read {brief(value)}{_unit(unit)}"
    elif blocked:
        came = f"given up, it could not be reached ({blocked})"
    else:
        came = "no reading came, the place was set aside" if set_aside else "not read yet"
    if expected is None:
        return f"{came[0].upper()}{came[1:]}."
    mean, sd = expected
    mean = 0.0 if abs(mean) < 1e-3 * sd else mean  # a negligible difference from zero
    return f"Expected {brief(mean)}{_unit(unit)} (standard deviation {brief(sd)}); {came}."


def elsewhere(record: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return sentences that compare the information at the visited and at the chosen place.

    `record` is the record of a stage of a replay. In a replay, the probe may have driven to another
    place than the chosen one.
    """
    went, information = record.get("went"), record.get("information") or {}
    if not isinstance(went, int) or not 0 <= went < len(names):
        return ()
    planned, gained = information.get("planned"), information.get("went")
    if went == record.get("location"):
        return ("The probe went there.",)
    if not isinstance(planned, float) or not isinstance(gained, float):
        return (f"The probe went to {called(names[went])} instead.",)
    figures = f"information {gained:.3f} nat, against {planned:.3f} nat at the chosen place"
    return (f"The probe went to {called(names[went])} instead: {figures}.",)


def called(name: str) -> str:
    """Return the name of a place for a sentence. A numeric name follows the word "place"."""
    number = name.lstrip("-+").replace(".", "", 1).isdigit()
    return f"place {name}" if number or not name.strip() else name


def _digits(chosen: CandidateValue, rival: CandidateValue | None) -> int:
    others = [chosen.upper] + ([rival.upper] if rival else [])
    differ = [v for v in others if abs(v - chosen.lower) > _SAME]
    for digits in (2, 3):
        if all(f"{v:.{digits}f}" != f"{chosen.lower:.{digits}f}" for v in differ):
            return digits
    return 4 if differ else 2


def _exact(candidate: CandidateValue) -> bool:
    return abs(candidate.upper - candidate.lower) < _SAME


def _figure(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.5g}"


def _range(candidate: CandidateValue, digits: int) -> str:
    low, high = _figure(candidate.lower, digits), _figure(candidate.upper, digits)
    return low if low == high else f"{low} to {high}"


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
