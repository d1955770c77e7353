"""Convert events to lines of the journal, and back.

Each field of an event is a key of the line. Plans, costs, readings and positions of probes have
several keys. Fields with default values are left out, apart from those in `Event.ALWAYS`.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, fields
from functools import cache
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.events import (
    EVENT_TYPES,
    Event,
    MissionStarted,
    ProbePosition,
    ProbeStatus,
    ReadingEvent,
    StayRecord,
)
from gp_active_sensing.types import Budget, CandidateValue, Cost, Off, Plan, Reading, RouteValue

Line = Mapping[str, Any]


def to_line(event: Event) -> dict[str, Any]:
    """Return an event as a line of the journal, without number and checksum."""
    line: dict[str, Any] = {"event": event.KIND}
    if isinstance(event, MissionStarted):
        return {**line, **event.details}
    for name, codec, default in _layout(event.KIND):
        value = getattr(event, name)
        if default is not MISSING and value == default and name not in event.ALWAYS:
            continue
        if codec.mark:
            line.update(codec.write(value))
        else:
            line[name] = codec.write(value)
    return line


def parse_event(line: Line) -> Event:
    """Return the event of a line of the journal.

    Raises:
        RunError: the kind is unknown, a key is missing, or a value has the wrong type.
    """
    kind = str(line.get("event"))
    if (found := EVENT_TYPES.get(kind)) is None:
        msg = f"journal: expected an event that this version knows, got {kind!r}: {dict(line)}"
        raise RunError(msg)
    if issubclass(found, MissionStarted):
        return found(details={key: value for key, value in line.items() if key != "event"})
    try:
        arguments = {}
        for name, codec, default in _layout(kind):
            key = codec.mark or name
            if key in line or default is MISSING:
                arguments[name] = codec.read(line if codec.mark else line[key])
        return found(**arguments)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        msg = f"journal: expected an event {kind!r} ({error!r}), got {dict(line)}"
        raise RunError(msg) from error


def parse_events(lines: Iterable[Line]) -> Iterator[Event]:
    """Yield the event of each line. Raises RunError, see `parse_event`."""
    return map(parse_event, lines)


class _Codec(NamedTuple):
    """Conversion of a field; `mark` is one of its keys if the field has several, else ""."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    mark: str = ""


@cache
def _layout(kind: str) -> tuple[tuple[str, _Codec, Any], ...]:
    """Return name, codec and default of each field of an event; MISSING = no default."""
    event = EVENT_TYPES[kind]
    hints, found = get_type_hints(event), []
    for one in fields(event):
        default = one.default
        if one.default_factory is not MISSING:
            default = one.default_factory()
        found.append((one.name, _codec(hints[one.name]), default))
    if issubclass(event, ReadingEvent):  # its time is that of the reading
        found = [row for row in found if row[0] != "stamp_ns"]
    return tuple(found)


def _codec(hint: Any) -> _Codec:
    if hint in _CODECS:
        return _CODECS[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):  # X | None
        one = _codec(inner[0])
        if one.mark:
            return one  # None is left out
        return _Codec(
            lambda value: None if value is None else one.write(value),
            lambda given: None if given is None else one.read(given),
        )
    if origin is tuple:  # of any length
        each = _codec(inner[0])
        return _Codec(
            lambda value: [each.write(v) for v in value],
            lambda given: tuple(each.read(v) for v in given),
        )
    of = _codec(inner[1])  # a mapping by names
    return _Codec(
        lambda value: {str(name): of.write(v) for name, v in value.items()},
        lambda given: {str(name): of.read(v) for name, v in dict(given).items()},
    )


def _finite(given: Any, key: str = "") -> float:
    number = float(given)
    if not math.isfinite(number):
        msg = f"{key + ': ' if key else ''}expected a finite number, got {given!r}"
        raise ValueError(msg)
    return number


def _at(line: Line, key: str) -> float:
    return _finite(line[key], key)


def _maybe(given: Any, read: Callable[[Any], Any] = float) -> Any:
    return None if given is None else read(given)


def _same(value: Any) -> Any:
    return value


def _write_where(where: ProbePosition) -> dict[str, Any]:
    pose = None if where.pose is None else list(where.pose)
    more = {"odometer_memory": list(where.memory)} if where.memory else {}
    return {"odometer": where.odometer, "pose": pose, **more}


def _read_where(line: Line) -> ProbePosition:
    pose = line["pose"]
    if pose is not None:
        stamp_ns, x, y = pose
        pose = int(stamp_ns), float(x), float(y)
    memory = tuple(_finite(number) for number in line.get("odometer_memory", ()))
    return ProbePosition(_at(line, "odometer"), pose, memory)


def _write_status(status: ProbeStatus) -> dict[str, Any]:
    return {**_write_where(status.where), "rejected": dict(status.rejected)}


def _read_status(line: Line) -> ProbeStatus:
    rejected = {str(word): int(count) for word, count in dict(line["rejected"]).items()}
    return ProbeStatus(_read_where(line), rejected)


def _read_stay(given: Line) -> StayRecord:
    variance, off = given["noise_variance"], given["off"]
    return StayRecord(
        int(given["count"]), float(given["value"]), _maybe(variance), _maybe(off, _read_off)
    )


def _read_off(given: Any) -> Off:
    """Return a distance from a place's point [m], or a horizontal and a vertical distance."""
    if isinstance(given, list | tuple):
        across, up = given
        return _finite(across), _finite(up)
    return _finite(given)


def _write_cost(cost: Cost) -> dict[str, Any]:
    return {"metres": float(cost.metres), "seconds": float(cost.seconds)}


def _read_cost(line: Line) -> Cost:
    return Cost(_at(line, "metres"), _at(line, "seconds"))


def _write_budget(budget: Budget) -> dict[str, Any]:
    return {"readings": budget.readings, "metres": budget.metres, "seconds": budget.seconds}


def _read_budget(given: Line) -> Budget:
    readings, metres, seconds = given["readings"], given["metres"], given["seconds"]
    return Budget(_maybe(readings, int), _maybe(metres, _finite), _maybe(seconds, _finite))


def _write_reading(reading: Reading) -> dict[str, Any]:
    line = {
        "stamp_ns": int(reading.stamp_ns),
        "location": reading.location,
        "position": None if reading.position is None else list(reading.position),
        "value": reading.value,
        "noise_variance": reading.noise_variance,
        "source": reading.source,
    }
    for name in ("position_variance", "height_variance", "quantity"):
        if value := getattr(reading, name):
            line[name] = value
    return line


def _read_reading(line: Line) -> Reading:
    position = line.get("position")
    return Reading(
        stamp_ns=int(line["stamp_ns"]),
        location=_maybe(line.get("location"), int),
        value=float(line["value"]),
        noise_variance=_maybe(line.get("noise_variance")),
        source=str(line.get("source", "")),
        position=None
        if position is None
        else (float(position[0]), float(position[1]), *map(float, position[2:3])),
        position_variance=_finite(line.get("position_variance", 0.0), "position_variance"),
        height_variance=_finite(line.get("height_variance", 0.0), "height_variance"),
        quantity=str(line.get("quantity", "")),
    )


def _write_plan(plan: Plan) -> dict[str, Any]:
    line = {
        "waypoints": list(plan.waypoints),
        "path": list(plan.path),
        **_write_cost(plan.cost),
        "lower": float(plan.lower),
        "upper": float(plan.upper),
        "expanded": plan.expanded,
        "plan_seconds": plan.seconds,
        "deadline_hit": plan.deadline_hit,
        "horizon": plan.horizon,
        "candidates": [list(c) for c in plan.candidates],
    }
    if plan.heading is not None:
        line["heading"] = plan.heading
    if plan.routes:
        line["routes"] = [list(route) for route in plan.routes]
    return line


def _read_plan(line: Line) -> Plan:
    candidates = line["candidates"]
    return Plan(
        waypoints=tuple(int(w) for w in line["waypoints"]),
        lower=float(line["lower"]),
        upper=float(line["upper"]),
        expanded=int(line["expanded"]),
        seconds=_at(line, "plan_seconds"),
        deadline_hit=bool(line["deadline_hit"]),
        path=tuple(int(p) for p in line["path"]),
        cost=_read_cost(line),
        horizon=int(line["horizon"]),
        candidates=tuple(CandidateValue(int(c), float(a), float(b)) for c, a, b in candidates),
        heading=_maybe(line.get("heading"), _finite),
        routes=tuple(
            RouteValue(str(kind), int(first), int(readings), float(left))
            for kind, first, readings, left in line.get("routes", ())
        ),
    )


_CODECS: dict[Any, _Codec] = {
    int: _Codec(int, int),
    float: _Codec(float, _finite),
    str: _Codec(str, str),
    bool: _Codec(bool, bool),
    Any: _Codec(_same, _same),
    ProbePosition: _Codec(_write_where, _read_where, "odometer"),
    ProbeStatus: _Codec(_write_status, _read_status),
    StayRecord: _Codec(asdict, _read_stay),
    Cost: _Codec(_write_cost, _read_cost, "metres"),
    Budget: _Codec(_write_budget, _read_budget),
    Reading: _Codec(_write_reading, _read_reading, "value"),
    Plan: _Codec(_write_plan, _read_plan, "waypoints"),
}
