"""State of a mission at the top of the live page, computed from the journal's events."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gp_active_sensing.config import from_mapping
from gp_active_sensing.engine.config import BudgetConfig
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.checkers import MUTE
from gp_active_sensing.mission.fleet import SILENT
from gp_active_sensing.planning.explain import called, why
from gp_active_sensing.records.events import (
    BatteryNoted,
    BudgetChanged,
    DecisionTaken,
    Event,
    LimitsMoved,
    MissionEnded,
    MissionStarted,
    MissionStopped,
    ProbePosition,
    ReadingEvent,
    ReadingUsed,
    ReturnBegun,
    RosterChanged,
    StateChanged,
    StatusNoted,
)
from gp_active_sensing.report.source import RunData, section_of
from gp_active_sensing.report.steps import Reconstruction
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import Aim, Budget, Plan
from gp_active_sensing.util.wording import REASONS, brief, distance

OVERDRAWN = 1.02
"""An alarm is raised when the driven distance is more than this many times the budget."""

_MEMORY_SECONDS = 30.0
"""Averaging time of the speed [s]."""
_STANDING = 0.2
"""Fraction of the planned speed below which a probe counts as stationary."""


@dataclass
class SpeedLog:
    """Speeds of probes, computed from their odometers."""

    _marks: dict[str, deque[tuple[int, float]]] = field(default_factory=dict)

    def add(self, name: str, stamp_ns: int, odometer: float) -> None:
        """Add an odometer value [m] at a time [ns]."""
        marks = self._marks.setdefault(name, deque())
        if marks and stamp_ns < marks[-1][0]:
            marks.clear()
        marks.append((stamp_ns, odometer))
        while marks[-1][0] - marks[0][0] > 1e9 * _MEMORY_SECONDS:
            marks.popleft()

    def of(self, name: str, plan: Plan) -> float | None:
        """Return a probe's speed, or its planned speed while it stands [m/s]; None = unknown."""
        cost = plan.cost
        planned = cost.metres / cost.seconds if cost.seconds > 0.0 else 0.0
        marks = self._marks.get(name, deque())
        seconds = 1e-9 * (marks[-1][0] - marks[0][0]) if marks else 0.0
        driven = (marks[-1][1] - marks[0][1]) / seconds if seconds > 1.0 else 0.0
        return (driven if driven > _STANDING * planned else planned) or None


def rest_of_route(
    topology: Topology, path: Sequence[int], at: Sequence[float], speed: float | None
) -> dict[str, Any]:
    """Return the rest of a route along `path` for a probe at the position `at` [m].

    Keys: ``metres`` = remaining distance. ``seconds`` = time until arrival; None = unknown.
    ``bearing`` = direction of the last place [degree], clockwise from true north on a map with a
    datum (``north``), otherwise from the map's y axis.
    """
    goals = topology.goals[list(path), :2]
    here = np.asarray(at, dtype=np.float64)[:2]
    starts, ways = goals[:-1], np.diff(goals, axis=0)
    lengths = np.linalg.norm(ways, axis=1)
    metres = float(np.linalg.norm(goals[0] - here) + lengths.sum())
    if len(goals) > 1:  # Some of the route may be driven: begin at the nearest point.
        squares = np.maximum(lengths**2, 1e-12)
        shares = np.clip(np.sum((here - starts) * ways, axis=1) / squares, 0.0, 1.0)
        off = np.linalg.norm(starts + shares[:, None] * ways - here, axis=1)
        leg = int(np.argmin(off))
        metres = float(off[leg] + (1.0 - shares[leg]) * lengths[leg] + lengths[leg + 1 :].sum())
    east, north = (goals[-1] - here).tolist()
    return {
        "metres": round(metres, 1),
        "bearing": round(math.degrees(math.atan2(east, north)) % 360.0, 1),
        "seconds": None if speed is None else round(metres / speed, 1),
        "north": topology.datum is not None,
    }


@dataclass
class MissionState:
    """State, budget, robots and readings of a mission.

    Args:
        budget: total budget.
        aim: map error at which the mission ends; None = the error does not end the mission.
    """

    budget: Budget = field(default_factory=Budget)
    aim: Aim | None = None
    state: str = "begun"
    reason: str = ""
    alarms: tuple[str, ...] = ()
    """Texts of the problems that need an operator."""
    used: int = 0
    """Number of used readings."""
    where: dict[str, ProbePosition] = field(default_factory=dict)
    """Last known position and odometer of each probe."""
    gone: dict[str, str] = field(default_factory=dict)
    """Reason why a probe does not take part in the mission, by probe name."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """Current plan of each probe; a plan without a waypoint leads to the end place."""
    read_ns: dict[str, int] = field(default_factory=dict)
    """Time of each probe's last reading [ns]."""
    newest_ns: int = 0
    """Time of the newest event other than a reading [ns]."""
    speeds: SpeedLog = field(default_factory=SpeedLog)
    rejected: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of rejected readings by probe and reason."""
    battery: dict[str, float] = field(default_factory=dict)
    """Last known charge of each probe's battery, from 0 to 1."""
    seconds_left: dict[str, float] = field(default_factory=dict)
    """Rest of each probe's time budget at the probe's last decision [s]."""
    closed: set[int] = field(default_factory=set)
    """Places closed by limits on the field, such as a smallest depth."""

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> MissionState:
        """Return the state of a mission before its first event."""
        try:
            found = from_mapping(BudgetConfig, section_of(config, "budget"))
        except ConfigError:  # run of another version: unknown budget
            return cls()
        return cls(found.budget(), found.aim())

    @property
    def over(self) -> bool:
        """True once the mission has ended or was stopped."""
        return self.state in ("ended", "stopped")

    def apply(self, event: Event) -> None:
        """Update the state with an event."""
        where = getattr(event, "where", None)
        if isinstance(where, ProbePosition):
            self._put(event.probe, where)
        if isinstance(event, ReadingEvent):
            self.read_ns[event.probe] = max(event.time_ns, self.read_ns.get(event.probe, 0))
        else:
            self.newest_ns = max(self.newest_ns, event.time_ns)
        match event:
            case MissionStarted():
                self.state, self.reason = "begun", ""
            case StateChanged():
                self.state, self.reason = event.state, event.reason
                for name, place in event.probes.items():
                    self._put(name, place)
            case MissionEnded():
                self.state, self.reason = "ended", event.reason
            case MissionStopped():
                self.state, self.reason = "stopped", event.reason
            case BudgetChanged():
                self.budget, self.aim = replace(event.budget, end=self.budget.end), event.aim
            case ReadingUsed():
                self.used += event.count
            case DecisionTaken():
                if self.state == "begun":  # simulations do not report that they are running
                    self.state = "running"
                self.plans[event.probe] = event.plan
                if event.left is not None and event.left.seconds is not None:
                    self.seconds_left[event.probe] = event.left.seconds
            case ReturnBegun():
                self.plans[event.probe] = event.plan
            case LimitsMoved():
                self.closed = self.closed.union(event.closed).difference(event.opened)
            case BatteryNoted():
                self.battery[event.probe] = event.level
            case RosterChanged():
                self.gone.pop(event.probe, None)
                if event.why:
                    self.gone[event.probe] = event.why
            case StatusNoted():
                self.alarms = event.alarms
                for name, status in event.probes.items():
                    self._put(name, status.where)
                    self.rejected[name] = status.rejected

    def _put(self, name: str, where: ProbePosition) -> None:
        self.where[name] = where
        if where.pose is not None:
            self.speeds.add(name, where.pose[0], where.odometer)

    def robots(self) -> list[dict[str, Any]]:
        """Return names and map positions of the probes [m]."""
        return [
            {"name": name, "x": where.pose[1], "y": where.pose[2], "quiet": name in self.gone}
            for name, where in sorted(self.where.items())
            if where.pose is not None
        ]

    def to_mapping(
        self, done: Reconstruction, data: RunData, written: float | None
    ) -> dict[str, Any]:
        """Return the content of the top of the page as plain data.

        `written` is the time of the last journal entry, in seconds since 1970; None = the page does
        not show the age of its data.
        """
        status = data.summary.get("status")
        state, reason = self.state, self.reason
        if status in ("finished", "failed", "interrupted") and state in ("begun", "running"):
            state = "ended" if status == "finished" else "stopped"
            reason = str(data.summary.get("reason") or status)
        over = state == "ended"
        closed = f" The limits close {len(self.closed)} places now." if self.closed else ""
        return {
            "state": state,
            "reason": reason,
            "stage": done.steps[-1].number if done.by_stage else None,
            "alarms": [] if over else self.alarms_in_words(),
            "spent": self._spent(done, data.symbol),
            "used": self.used,
            "refused": self._refused(data.summary if over else {}),
            "probes": [] if over else self._probes(data, written),
            "known": _certainty(done, data, self.aim) + closed,
        }

    def _refused(self, summary: Mapping[str, Any]) -> list[tuple[str, int]]:
        """Return (reason, count) of unused readings, most frequent reason first."""
        total: Counter[str] = Counter()
        for counts in self.rejected.values():
            total.update(counts)
        counts_at_end = summary.get("rejected_by_reason")
        if isinstance(counts_at_end, Mapping):
            total = Counter({str(word): int(count) for word, count in counts_at_end.items()})
        return [(REASONS.get(w, w.replace("_", " ")), n) for w, n in total.most_common() if n]

    def _names(self) -> list[str]:
        names = {*self.where, *self.plans, *self.gone, *self.seconds_left}
        return sorted(names - {""} or names)

    def alarms_in_words(self) -> list[str]:
        """Return the texts of problems that need an operator."""
        found = list(self.alarms)
        for name, reason in self.gone.items():
            if reason.startswith((MUTE, SILENT)) and not any(name in alarm for alarm in found):
                found.append(f"{name}: {reason}")
        if self.state == "paused" and self.reason.startswith(MUTE):
            found.append(f"sensor: {self.reason}")
        for name, where in sorted(self.where.items()):
            most = self.budget.metres
            if most is not None and where.odometer > OVERDRAWN * most:
                over = f"{distance(where.odometer - most)} more than its budget"
                found.append(f"{name or 'the probe'} has driven {over}")
        for name, seconds in sorted(self.seconds_left.items()):
            if self.budget.seconds is not None and seconds < 0.0:
                found.append(f"{name or 'the probe'} is {-seconds:.0f} s beyond its budget")
        return found

    def _probes(self, data: RunData, written: float | None) -> list[dict[str, Any]]:
        found, topology = [], data.topology
        for name in self._names():
            plan, where = self.plans.get(name), self.where.get(name, ProbePosition(0.0))
            row: dict[str, Any] = {"probe": name, "gone": self.gone.get(name, "")}
            for key, stamp_ns in (
                ("poseAt", None if where.pose is None else where.pose[0]),
                ("readAt", self.read_ns.get(name)),
            ):
                if written is not None and stamp_ns is not None:
                    row[key] = round(written - 1e-9 * max(0, self.newest_ns - stamp_ns), 1)
            if plan is not None and plan.path and not row["gone"]:
                home = plan.waypoint is None
                row["place"] = "the end place" if home else called(topology.names[plan.path[-1]])
                row["why"] = plan.reason if home else why(plan, topology.names, data.policy)
                if where.pose is not None:
                    speed = self.speeds.of(name, plan) if self.state == "running" else None
                    row |= rest_of_route(topology, plan.path, where.pose[1:], speed)
            found.append(row)
        return found

    def _spent(self, done: Reconstruction, unit: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        last = done.steps[-1]

        def add(what: str, spent: float, total: float, text: str) -> None:
            share = min(1.0, max(0.0, spent / total)) if total > 0 else 1.0
            found.append({"what": what, "share": round(share, 4), "text": text})

        if (total := self.budget.readings) is not None:
            visits = [s.record["visits"] for s in done.steps if "visits" in s.record]
            spent = int(max(visits)) if visits else last.observed
            add("places", spent, total, f"{max(0, total - spent)} of {total} left")
        for name in self._names() or [""]:
            whose = f" of {name}" if name else ""
            if (metres := self.budget.metres) is not None:
                place = self.where.get(name)
                driven = last.metres if place is None else place.odometer
                text = f"{distance(max(0.0, metres - driven))} of {distance(metres)} left"
                add(f"distance{whose}", driven, metres, text)
            if (level := self.battery.get(name)) is not None:
                add(f"battery{whose}", 1.0 - level, 1.0, f"{100.0 * level:.0f} %")
            if (seconds := self.budget.seconds) is not None:
                remains = self.seconds_left.get(name, seconds)
                text = f"{_duration(remains)} of {_duration(seconds)} left"
                add(f"time{whose}", seconds - remains, seconds, text)
        first = _first_promise(done)
        if self.aim is not None and first is not None and last.promised is not None:
            text = f"{brief(last.promised)} expected, {brief(self.aim.error)} {unit} wanted".strip()
            gap = max(first - self.aim.error, 1e-12)
            add("error of the map", first - last.promised, gap, text)
        return found


def _duration(seconds: float) -> str:
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


def _first_promise(done: Reconstruction) -> float | None:
    """Return the first expected error of the map that is based on two or more places."""
    known = (s.promised for s in done.steps if s.observed > 1 and s.promised is not None)
    return next(known, None)


def _certainty(done: Reconstruction, data: RunData, aim: Aim | None) -> str:
    last, std = done.steps[-1], done.std[-1]
    after = f" {data.symbol}" if data.unit else ""
    read = f"{last.observed} of {data.topology.n} places are read."
    if last.promised is None:
        return f"{read} More are needed to estimate the error of the map."
    of = f" of {data.main}" if data.quantities else ""
    whole = f"{read} Expected error of the map{of}: {brief(last.promised)}{after}"
    before = _first_promise(done)
    if before is not None and before > 1.05 * last.promised:
        whole += f" (at first {brief(before)}{after})"
    doubt = called(data.topology.names[int(std.argmax())])
    worst = f"standard deviation {brief(float(std.max()))}{after}"
    whole += f". The uncertainty is largest at {doubt} ({worst})."
    if aim is not None:
        reached = "is reached" if last.promised <= aim.error else "is not reached yet"
        whole += f" The wanted error of {brief(aim.error)}{after} {reached}."
    return whole
