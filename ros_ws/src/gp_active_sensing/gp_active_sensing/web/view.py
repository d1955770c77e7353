"""Parts of the live page: the steps and maps of the report page, and the mission state."""

from __future__ import annotations

import asyncio
import dataclasses
import html
import json
import math
import secrets
import time
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from gp_active_sensing.records.run_directory import JOURNAL
from gp_active_sensing.report.facts import headline
from gp_active_sensing.report.finer import finer_map, finer_spacing
from gp_active_sensing.report.page import config_text, facts_table, slots, stages_table
from gp_active_sensing.report.payload import (
    describe,
    describe_step,
    floor_of,
    groups_of,
    kept_of,
    pack,
    pack_tracks,
    places_of,
    quality_of,
    ranges_of,
)
from gp_active_sensing.report.reconstruction import GrowingReconstruction
from gp_active_sensing.report.source import RunData
from gp_active_sensing.report.steps import GrowingStep, Reconstruction, ReportStep, number_of
from gp_active_sensing.types import FloatArray
from gp_active_sensing.web.follow import FollowedData, RunFollower, stamp_of

FINER = "finer"
TABLES = ("stages", "facts", FINER)
"""Names of the costly parts, which are computed only on request."""

T = TypeVar("T")
_NOTHING = object()

_WORDS = {"begun": "under way", "running": "under way", "ended": "finished"}
"""Displayed words for mission states; other states are shown unchanged."""


class PacedCache(Generic[T]):
    """Cache of a costly result, with pauses between computations.

    Args:
        share: largest fraction of the time that is spent on computing the result.
    """

    def __init__(self, clock: Callable[[], float], share: float = 0.05) -> None:
        self._clock, self._share = clock, share
        self._value: T | None = None
        self._of: Hashable = _NOTHING
        self._wanted: Hashable = _NOTHING
        self._next = -math.inf

    def get(self, of: Hashable, work: Callable[[], T], *, last: bool = False) -> T | None:
        """Return ``work()``, or the cached result if it was computed for the same `of`.

        During the pause after a computation, the cached result may be out of date. With `last`
        there is no pause. The result is None if nothing has been computed yet.
        """
        self._wanted = of
        if of != self._of and (last or self._clock() >= self._next):
            began = self._clock()
            self._value, self._of = work(), of
            self._next = self._clock() + (self._clock() - began) * (1.0 / self._share - 1.0)
        return self._value

    @property
    def due(self) -> bool:
        """True if the result is out of date and the pause after its computation is over."""
        return self._wanted != self._of and self._clock() >= self._next


class _QuantityParts:
    """Parts of the page for one quantity, with cached texts of unchanged parts."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._rows: dict[int, tuple[GrowingStep, int, str]] = {}
        """For each step: the step, the version of its map, and the JSON text of the map."""
        self._sent: dict[int, tuple[ReportStep, tuple[Any, int], str]] = {}
        """For each step: the step, the inputs of its description, and the JSON text."""
        self._floor: PacedCache[tuple[float, int] | None] = PacedCache(clock)
        self._quality: PacedCache[dict[str, Any] | None] = PacedCache(clock)
        self._finer: PacedCache[str] = PacedCache(clock)

    @property
    def due(self) -> bool:
        """True if a costly part may be computed again."""
        return self._floor.due or self._quality.due

    def parts(
        self, found: FollowedData, growing: GrowingReconstruction, done: Reconstruction
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the data common to all steps, and the JSON parts by name."""
        head = {**describe(growing.data, done), "floor": self._current_floor(found, growing, done)}
        maps = {**ranges_of(done), "steps": list(done.shown), "all": len(done.steps)}
        return head, {
            "head": as_text(head),
            "maps": as_text(maps),
            "quality": as_text(self._current_quality(found, growing, done)),
            **self._steps(growing, done),
            **self._maps(growing),
        }

    def finer(self, found: FollowedData, growing: GrowingReconstruction) -> str:
        """Return the finer map and its step number as JSON.

        The step may be older than the newest step, see `PacedCache`.
        """

        def made() -> str:
            drawn = finer_map(growing.data.topology, growing.belief)
            return as_text(drawn and {"n": growing.parts[-1].number, **drawn})

        return self._finer.get(growing.looks, made, last=found.mission.over) or as_text(None)

    def _current_floor(
        self, found: FollowedData, growing: GrowingReconstruction, done: Reconstruction
    ) -> tuple[float, int] | None:
        """Return the result of `floor_of`; None if readings came after its computation."""
        data = growing.data
        is_final = "least_error" in data.summary  # finished missions have it in the summary
        key, last = (growing.looks, is_final), found.mission.over or is_final
        floor = self._floor.get(key, lambda: floor_of(data, done), last=last)
        old = not is_final and floor is not None and floor[1] < done.steps[-1].observed
        return None if old else floor  # not comparable with the newest expected error

    def _current_quality(
        self, found: FollowedData, growing: GrowingReconstruction, done: Reconstruction
    ) -> dict[str, Any] | None:
        key, last = growing.looks, found.mission.over or bool(found.data.summary)
        return self._quality.get(key, lambda: quality_of(growing.data, done), last=last)

    def _steps(self, growing: GrowingReconstruction, done: Reconstruction) -> dict[str, str]:
        groups, kept = groups_of(done), kept_of(len(done.steps))
        parts = {}
        for number, step in enumerate(done.steps):
            before = self._sent.get(number)
            if before is None or before[0] != step or before[1] != (groups, kept):
                row = describe_step(growing.data, step, groups, kept)
                row["readings"] = [list(reading) for reading in step.readings]
                before = step, (groups, kept), as_text(row)
            parts[number] = before
        self._sent = parts
        return {f"step.{number}": text for number, (_, _, text) in parts.items()}

    def _maps(self, growing: GrowingReconstruction) -> dict[str, str]:
        rows = {}
        still = growing.data.truth is not None and not growing.data.truth.changes
        for number, step in enumerate(growing.parts):
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
        if still and (truth := growing.parts[0].truth) is not None:
            parts["truth"] = as_text(_packed(truth))
        return parts


class LiveView:
    """Parts of the live page, with cached texts of unchanged parts.

    An update costs time linear in the numbers of steps and places. Costly parts use `PacedCache`.
    """

    def __init__(self, follower: RunFollower, clock: Callable[[], float] = time.monotonic) -> None:
        self._follower, self._clock = follower, clock
        self._number = -1
        self._fixed: dict[str, str] = {}
        """Parts that depend only on the followed mission."""
        self._shown: dict[str, _QuantityParts] = {}
        self._tables: dict[str, str] = {}
        """Texts of the tables requested since the last change, by name."""

    @property
    def due(self) -> bool:
        """True if a costly part may be computed again."""
        return self._number >= 0 and any(shown.due for shown in self._shown.values())

    def parts(self) -> dict[str, str]:
        """Return all parts by name."""
        follower, found = self._follower, self._follower.found
        self._tables = {}
        if found is None:
            self._number = -1
            return {"run": as_text({"problem": follower.problem})}
        if follower.number != self._number:
            self._begin(found)
        done = found.growing.now()
        head, parts = self._shown[""].parts(found, found.growing, done)
        for name, growing in found.further.items():
            if found.mission.over:
                growing.finish()
            _, further = self._shown[name].parts(found, growing, growing.now())
            parts |= {f"{name}/{key}": text for key, text in further.items()}
        run = {
            "problem": "",
            "number": self._number,
            "finer": finer_spacing(found.data.topology) is not None,
            "quantities": list(found.data.quantities),
        }
        return {
            **self._fixed,
            **parts,
            "run": as_text(run),
            "mission": as_text(self._mission(found, done)),
            "robots": as_text(found.mission.robots()),
            "tracks": as_text([] if found.tracks is None else pack_tracks(found.tracks, done)),
            **{f"page.{k}": as_text(v) for k, v in self._slots(found, done, head).items()},
        }

    def table(self, name: str, quantity: str = "") -> str:
        """Return one of `TABLES` as HTML or JSON; "" if the table is empty.

        `quantity` is the quantity whose finer map is returned; "" = the main quantity. Call this
        method only from the thread that calls `parts`.
        """
        found = self._follower.found
        if found is None:
            return ""
        if name == FINER:
            shown, growing = self._shown.get(quantity), found.growing
            if shown is None:
                return as_text(None)
            return shown.finer(found, found.further[quantity] if quantity else growing)
        if name not in self._tables:
            data = found.data
            made = stages_table(data) if name == "stages" else facts_table(data, found.tally)
            self._tables[name] = made
        return self._tables[name]

    def _begin(self, found: FollowedData) -> None:
        self._number = self._follower.number
        self._shown = {name: _QuantityParts(self._clock) for name in ("", *found.further)}
        self._fixed = {
            "places": as_text(places_of(found.data.topology)),
            "page.config": as_text(config_text(found.data)),
        }

    def _mission(self, found: FollowedData, done: Reconstruction) -> dict[str, Any]:
        data = found.data
        stamp = None if found.tracks is None else stamp_of(data.path / JOURNAL)
        mission = found.mission.to_mapping(done, data, None if stamp is None else 1e-9 * stamp[2])
        if self._follower.loading:
            mission["reason"] = "The run is being loaded; this is its state so far."
        if (last_ns := self._follower.abandoned_ns) is not None:
            moment = datetime.fromtimestamp(1e-9 * last_ns).astimezone()
            again = "start the mission again with the same run directory"
            if found.tracks is None:
                again = f"add --out {data.path} --resume to the command gp-active-sensing run"
            alarm = (
                "no process on this machine writes this run any more; the last write was at "
                f"{moment:%Y-%m-%d %H:%M:%S %Z}; to continue, {again}"
            )
            mission |= {"state": "stopped", "reason": "", "alarms": [alarm, *mission["alarms"]]}
        return {**mission, "unit": data.symbol, "records": len(data.records)}

    def _slots(
        self, found: FollowedData, done: Reconstruction, head: Mapping[str, Any]
    ) -> dict[str, str]:
        data = _with_newest(found.data, head["floor"], done.steps[-1].number)
        if found.damaged:
            note = f"{found.damaged} lines of the journal cannot be read and are left out"
            data = dataclasses.replace(data, notes=(*data.notes, note))
        payload = {**head, "maps": {"steps": done.shown, "all": len(done.steps)}}
        under_way = not found.data.summary and not found.mission.over
        continues = under_way or self._follower.loading
        shown = slots(data, done, payload, found.tally, continues=continues)
        if not found.data.summary:
            state = _WORDS.get(found.mission.state, found.mission.state)
            state = state if self._follower.abandoned_ns is None else "stopped"
            status = ". ".join(filter(None, (f"Run {state}", headline(data, found.tally))))
            shown["status"] = html.escape(status)
        return shown


def _with_newest(data: RunData, floor: tuple[float, int] | None, stage: int) -> RunData:
    """Return the run; an unfinished run gets a summary from its records up to `stage`.

    `floor` is the result of `floor_of`.
    """
    if data.summary:
        return data
    records = tuple(r for r in data.records if number_of(r.get("stage"), 0) <= stage)
    newest: Mapping[str, Any] = next((r for r in reversed(records) if "explained" in r), {})
    least, places = floor or (None, None)
    known = {
        "explained": newest.get("explained"), "least_error": least, "least_places": places,
    }  # fmt: skip
    return dataclasses.replace(data, summary=known, records=records)


def _packed(values: FloatArray) -> dict[str, Any]:
    return pack(values[None, :], float(values.min()), float(values.max()))


def as_text(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


class Board:
    """JSON parts of a page by name, each with the version of its last change.

    A viewer sends the version that it has. It receives the newest state of each part that changed
    after this version. Therefore no queue is needed.
    """

    def __init__(self) -> None:
        self.version = 0
        """Number of changes so far."""
        self._name = secrets.token_hex(6)
        self._parts: dict[str, str] = {}
        self._since: dict[str, int] = {}
        """For each part, the version of the board at the part's last change or removal."""
        self._changed = asyncio.Condition()
        self.closed = False
        """True after `close`."""

    async def close(self) -> None:
        """Close the board and wake up all waiting viewers."""
        self.closed = True
        async with self._changed:
            self._changed.notify_all()

    async def put(self, parts: Mapping[str, str]) -> bool:
        """Replace all parts; return whether any part changed."""
        changed = {k: v for k, v in parts.items() if self._parts.get(k) != v}
        gone = [k for k in self._parts if k not in parts]
        if not changed and not gone:
            return False
        self.version += 1
        self._parts.update(changed)
        for name in gone:
            del self._parts[name]
        self._since.update(dict.fromkeys([*changed, *gone], self.version))
        async with self._changed:
            self._changed.notify_all()
        return True

    async def after(self, version: int, seconds: float) -> bool:
        """Wait for a newer version for at most `seconds`; return whether a newer version exists."""

        def news() -> bool:
            return self.closed or self.version > version

        try:
            async with self._changed:
                await asyncio.wait_for(self._changed.wait_for(news), seconds)
        except asyncio.TimeoutError:
            return False
        return self.version > version

    def since(self, version: int) -> str:
        """Return the parts changed since a version as a JSON object; for version -1, all parts."""
        changed = [k for k, at in self._since.items() if at > version]
        parts = ",".join(f"{as_text(k)}:{self._parts[k]}" for k in changed if k in self._parts)
        gone = [k for k in changed if k not in self._parts] if version >= 0 else []
        whole = "true" if version < 0 else "false"
        return f'{{"whole":{whole},"gone":{as_text(gone)},"parts":{{{parts}}}}}'

    def mark(self) -> str:
        """Return an identifier of this board's current version."""
        return f"{self._name}-{self.version}"

    def version_of(self, mark: str) -> int:
        """Return the version in an identifier from `mark`; -1 for another board's identifier."""
        name, _, number = mark.partition("-")
        seen = int(number) if number.isascii() and number.isdigit() and len(number) < 18 else -1
        return seen if name == self._name and seen <= self.version else -1
