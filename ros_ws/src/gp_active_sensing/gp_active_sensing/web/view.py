"""The parts of the live page: those of the report, step by step, and the state of the mission."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping
from typing import Any

from gp_active_sensing.report.facts import headline
from gp_active_sensing.report.growing import GrowingStep
from gp_active_sensing.report.page import slots
from gp_active_sensing.report.payload import (
    describe,
    describe_steps,
    pack,
    pack_tracks,
    places_of,
    ranges_of,
)
from gp_active_sensing.report.reconstruction import Reconstruction
from gp_active_sensing.types import FloatArray
from gp_active_sensing.web.board import as_text
from gp_active_sensing.web.follow import Followed, RunFollower

__all__ = ["LiveView"]


_WORDS = {"begun": "under way", "running": "under way", "ended": "finished"}
"""How a state is said; the others are said as they are."""


class LiveView:
    """Makes the parts of the page, and remembers those that do not change.

    Args:
        follower: of the run.
    """

    def __init__(self, follower: RunFollower) -> None:
        self._follower = follower
        self._number = -1
        self._places = ""
        self._rows: dict[int, tuple[GrowingStep, int, str]] = {}
        """Of each step with a map: of which look at the belief it is, and as JSON."""
        self.stages = ""
        """The table of the stages as HTML, which is sent to those who ask for it."""

    def parts(self) -> dict[str, str]:
        """Return all parts by name."""
        follower, found = self._follower, self._follower.found
        if found is None:
            self._number, self.stages = -1, ""
            return {"run": as_text({"problem": follower.problem, "path": str(follower.path or "")})}
        if follower.number != self._number:
            self._number, self._rows = follower.number, {}
            self._places = as_text(places_of(found.data.topology))
        done = found.growing.now()
        head = describe(found.data, done)
        parts = {
            "run": as_text(
                {"problem": "", "path": str(follower.path or ""), "number": self._number}
            ),
            "places": self._places,
            "head": as_text(head),
            "maps": as_text({**ranges_of(done), "steps": list(done.shown), "all": len(done.steps)}),
            "mission": as_text(self._mission(found, done)),
            "robots": as_text(found.mission.robots()),
            "tracks": as_text(_tracks(found, done)),
            **self._steps(found, done),
        }
        parts |= {f"page.{k}": as_text(v) for k, v in self._slots(found, done, head).items()}
        return parts | self._maps(found)

    def _mission(self, found: Followed, done: Reconstruction) -> dict[str, Any]:
        data = found.data
        told = found.mission.told(done, data.topology, data.summary, unit=data.unit)
        return {**told, "unit": data.unit}

    def _steps(self, found: Followed, done: Reconstruction) -> dict[str, str]:
        """Return each step with its readings."""
        parts = {}
        for number, step in enumerate(describe_steps(found.data, done)):
            readings = [list(reading) for reading in done.steps[number].readings]
            parts[f"step.{number}"] = as_text({**step, "readings": readings})
        return parts

    def _slots(
        self, found: Followed, done: Reconstruction, head: Mapping[str, Any]
    ) -> dict[str, str]:
        """Return the texts around the maps; those of a mission under way cost little."""
        data = found.data
        if not data.summary:  # what was found out for the newest record need not be again
            with_it = (r for r in reversed(data.records) if "explained" in r)
            newest: Mapping[str, Any] = next(with_it, {})
            least = {"least_error": None, "least_places": None}
            data = dataclasses.replace(
                data, summary={"explained": newest.get("explained"), **least}
            )
        notes = data.notes
        if found.damaged:
            notes += (f"{found.damaged} lines of the journal cannot be read and are left out",)
        data = dataclasses.replace(data, notes=notes)
        payload: Mapping[str, Any] = {
            **head,
            "maps": {"steps": done.shown, "all": len(done.steps)},
        }
        told = slots(data, done, payload, found.ends)
        del told["facts"]  # the head of the page says what is known of it by now
        self.stages = told.pop("stages")
        if not found.data.summary:
            state = _WORDS.get(found.mission.state, found.mission.state)
            versions = ", ".join(f"{k} {v}" for k, v in data.versions.items())
            said = (f"Run {state}", headline(data, found.ends), versions)
            told["status"] = html.escape(". ".join(filter(None, said)))
        return told

    def _maps(self, found: Followed) -> dict[str, str]:
        """Return the maps of the steps that have some."""
        rows = {}
        still = found.data.truth is not None and not found.data.truth.changes
        for number, step in enumerate(found.growing.parts):
            if step.mean is None or step.std is None:
                continue
            kept = self._rows.get(number)
            if kept is None or kept[0] is not step or kept[1] != step.version:
                row = {"mean": _packed(step.mean), "std": _packed(step.std)}
                if step.truth is not None and not still:
                    row["truth"] = _packed(step.truth)
                kept = step, step.version, as_text(row)
            rows[number] = kept
        self._rows = rows
        parts = {f"map.{number}": text for number, (_, _, text) in rows.items()}
        if still and (truth := found.growing.parts[0].truth) is not None:
            parts["truth"] = as_text(_packed(truth))
        return parts


def _tracks(found: Followed, done: Reconstruction) -> list[dict[str, Any]]:
    """Return where the robots drove."""
    if found.tracks is None:
        return []
    steps = [number if done.by_stage else step.number for number, step in enumerate(done.steps)]
    return pack_tracks(found.tracks.tracks(steps, by_stage=done.by_stage))


def _packed(values: FloatArray) -> dict[str, Any]:
    """Return (n,) values packed in their own range."""
    return pack(values[None, :], float(values.min()), float(values.max()))
