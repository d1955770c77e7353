"""What a person wants to know of a mission first, from the events of its journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gp_active_sensing.config import from_mapping
from gp_active_sensing.engine.config import BudgetConfig
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning.explain import called
from gp_active_sensing.records.events import (
    BudgetChanged,
    DecisionTaken,
    Event,
    MissionEnded,
    MissionStarted,
    MissionStopped,
    ReadingUsed,
    ReturnBegun,
    RosterChanged,
    StateChanged,
    StatusNoted,
    Whereabouts,
)
from gp_active_sensing.report.steps import Reconstruction
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import Aim, Budget
from gp_active_sensing.util.wording import brief, distance

__all__ = ["MissionState"]

REASONS = {
    "gated": "next to impossible by the belief",
    "no_pose": "no pose near its time",
    "off_map": "not on the map",
    "settling": "the sensor was settling",
    "partial_visit": "the road was not driven far enough",
    "not_finite": "not a finite number",
    "fill_value": "fill values",
    "not_valid": "outside the valid range",
    "too_fast": "more than are taken in",
    "budget_spent": "the budget was spent",
    "mission_over": "the mission was over",
    "unknown_probe": "of a probe that takes no part",
}
"""Words of reasons for a person; of all others the word itself."""


@dataclass
class MissionState:
    """State, budget, robots and readings of a mission, as its journal says.

    Args:
        budget: what may be spent in all.
        aim: the error of the map at which it is over; None = it is not by one.
    """

    budget: Budget = field(default_factory=Budget)
    aim: Aim | None = None
    state: str = "begun"
    reason: str = ""
    alarms: tuple[str, ...] = ()
    """What somebody has to look at, in words."""
    used: int = 0
    """Readings."""
    where: dict[str, Whereabouts] = field(default_factory=dict)
    """Of each probe, where that is known."""
    gone: set[str] = field(default_factory=set)
    """Probes that take no part."""
    bound: dict[str, int | None] = field(default_factory=dict)
    """Where each probe was sent last; None = home."""
    rejected: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """Of each probe, readings that were not used, by the word of the reason."""
    seconds_left: dict[str, float] = field(default_factory=dict)
    """Of each probe with a limit on its time, at its last decision."""

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> MissionState:
        """Return the state of a mission that has just begun."""
        section = config.get("budget")
        try:
            found = from_mapping(BudgetConfig, section if isinstance(section, Mapping) else {})
        except ConfigError:  # of another version: nothing is said of its budget
            return cls()
        return cls(found.budget(), found.aim())

    @property
    def over(self) -> bool:
        """Whether it has ended, or was stopped: nothing more is read for now."""
        return self.state in ("ended", "stopped")

    def apply(self, event: Event) -> None:
        """Take in an event."""
        where = getattr(event, "where", None)
        if isinstance(where, Whereabouts):
            self.where[event.probe] = where
        match event:
            case MissionStarted():
                self.state, self.reason = "begun", ""
            case StateChanged():
                self.state, self.reason = event.state, event.reason
                self.where.update(event.probes)
            case MissionEnded():
                self.state, self.reason = "ended", event.reason
            case MissionStopped():
                self.state, self.reason = "stopped", event.reason
            case BudgetChanged():
                self.budget, self.aim = replace(event.budget, end=self.budget.end), event.aim
            case ReadingUsed():
                self.used += event.count
            case DecisionTaken():
                self._running()
                self.bound[event.probe] = event.plan.waypoint
                if event.left is not None and event.left.seconds is not None:
                    self.seconds_left[event.probe] = event.left.seconds
            case ReturnBegun():
                self.bound[event.probe] = None
            case RosterChanged():
                (self.gone.add if event.why else self.gone.discard)(event.probe)
            case StatusNoted():
                self.alarms = event.alarms
                for name, status in event.probes.items():
                    self.where[name] = status.where
                    self.rejected[name] = status.rejected

    def _running(self) -> None:
        """A decision was taken: a simulated mission does not say otherwise that it runs."""
        if self.state == "begun":
            self.state = "running"

    def robots(self) -> list[dict[str, Any]]:
        """Return where the probes are, in the frame of the map [m]."""
        return [
            {"name": name, "x": where.pose[1], "y": where.pose[2], "quiet": name in self.gone}
            for name, where in sorted(self.where.items())
            if where.pose is not None
        ]

    def told(
        self,
        done: Reconstruction,
        topology: Topology,
        summary: Mapping[str, Any],
        *,
        unit: str,
    ) -> dict[str, Any]:
        """Return what the head of the page says, as plain data.

        Args:
            done: the steps so far.
            topology: the map.
            summary: of the mission, {} while there is none.
            unit: of the field.
        """
        status = summary.get("status")
        state, reason = self.state, "; ".join(filter(None, [*self.alarms, self.reason]))
        if status in ("finished", "failed", "interrupted") and state in ("begun", "running"):
            state = "ended" if status == "finished" else "stopped"
            reason = str(summary.get("reason") or status)
        over = state == "ended"
        return {
            "state": state,
            "reason": reason,
            "stage": done.steps[-1].number if done.by_stage else None,
            "spent": self._spent(done, unit),
            "used": self.used,
            "refused": self._refused(summary if over else {}),
            "next": [] if over else self._next(topology),
            "known": _known(done, topology, unit, self.aim),
        }

    def _refused(self, summary: Mapping[str, Any]) -> list[tuple[str, int]]:
        """Return (reason, count) of readings that were not used, the most frequent first."""
        total: Counter[str] = Counter()
        for counts in self.rejected.values():
            total.update(counts)
        told = summary.get("rejected_by_reason")
        if isinstance(told, Mapping):
            total = Counter({str(word): int(count) for word, count in told.items()})
        return [(REASONS.get(w, w.replace("_", " ")), n) for w, n in total.most_common() if n]

    def _next(self, topology: Topology) -> list[dict[str, str]]:
        found = []
        for name, place in sorted(self.bound.items()):
            if name in self.gone:
                continue
            there = "the end place" if place is None else called(topology.names[place])
            found.append({"probe": name, "place": there})
        return found

    def _spent(self, done: Reconstruction, unit: str) -> list[dict[str, Any]]:
        """Return what was spent of each limit: what, how much of how much, as text and share."""
        found: list[dict[str, Any]] = []
        last = done.steps[-1]

        def add(what: str, spent: float, total: float, text: str) -> None:
            share = min(1.0, max(0.0, spent / total)) if total > 0 else 1.0
            found.append({"what": what, "share": round(share, 4), "text": text})

        if (total := self.budget.readings) is not None:
            visits = [s.record["visits"] for s in done.steps if "visits" in s.record]
            spent = int(max(visits)) if visits else last.observed
            add("places", spent, total, f"{spent} of {total}, {max(0, total - spent)} left")
        for name in sorted({*self.where, *self.seconds_left}) or [""]:
            whose = f" of {name}" if name else ""
            if (metres := self.budget.metres) is not None:
                place = self.where.get(name)
                driven = last.metres if place is None else place.odometer
                left = distance(max(0.0, metres - driven))
                text = f"{distance(driven)} of {distance(metres)}, {left} left"
                add(f"way{whose}", driven, metres, text)
            if (seconds := self.budget.seconds) is not None:
                remains = self.seconds_left.get(name, seconds)
                text = f"{_duration(remains)} of {_duration(seconds)} left at the last decision"
                add(f"time{whose}", seconds - remains, seconds, text)
        first = _first_promise(done)
        if self.aim is not None and first is not None and last.promised is not None:
            text = f"{brief(last.promised)} promised, {brief(self.aim.error)} {unit} wanted".strip()
            gap = max(first - self.aim.error, 1e-12)
            add("error of the map", first - last.promised, gap, text)
        return found


def _duration(seconds: float) -> str:
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


def _first_promise(done: Reconstruction) -> float | None:
    """Return the first error that was promised from two places or more.

    From fewer it is what was held for possible before, and says nothing of the field.
    """
    known = (s.promised for s in done.steps if s.observed > 1 and s.promised is not None)
    return next(known, None)


def _known(done: Reconstruction, topology: Topology, unit: str, aim: Aim | None) -> str:
    """Say in a sentence or two how good the map is by now."""
    last, std = done.steps[-1], done.std[-1]
    after = f" {unit}" if unit else ""
    read = f"{last.observed} of {topology.n} places are read."
    if last.promised is None:
        return f"{read} That is too little to promise an error of the map yet."
    whole = f"{read} The map as it is promises an error of {brief(last.promised)}{after}"
    before = _first_promise(done)
    if before is not None and before > 1.05 * last.promised:
        whole += f", down from {brief(before)}{after}"
    doubt = called(topology.names[int(std.argmax())])
    whole += f". Least is known of {doubt} (±\u00a0{brief(float(std.max()))}{after})."
    if aim is not None:
        reached = "is reached" if last.promised <= aim.error else "is not reached yet"
        whole += f" The error that was asked for, {brief(aim.error)}{after}, {reached}."
    return whole
