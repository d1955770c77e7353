from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import DecisionTaken, MissionStarted, ReadingUsed
from gp_active_sensing.records.run_directory import RunDirectory, stage_record
from gp_active_sensing.types import CandidateValue, FloatArray, Plan, Reading
from tests.unit.sim.scenarios import GRID

HOSTILE = "</script><script>window.bad=1</script><img src=x onerror=window.bad=2>"
STARTED = to_line(MissionStarted(details={"seed": 0, "versions": {}, "driver": "ros"}))


def decided(stage: int, plan: Plan, stamp_ns: int) -> dict[str, Any]:
    return to_line(DecisionTaken(stage=stage, plan=plan, stamp_ns=stamp_ns))


def used(reading: Reading) -> dict[str, Any]:
    return to_line(ReadingUsed(reading=reading))


def node_run(path: Path, **config: Any) -> Path:
    """A directory as a node leaves it: no truth, few keys, positions instead of places."""
    with RunDirectory.create(
        path, {"map": GRID["map"], "belief": GRID["belief"], "node": {"rate": 5}, **config}
    ) as run:
        run.append_event(STARTED)
        run.append_event(decided(1, plan(0, 1), 0))
        run.append_event(used(Reading(0, 0, 30.0)))
        run.append_record(record(1, plan(0, 1), 30.0))
        run.append_event(decided(2, plan(1), 1))
        run.append_event(used(Reading(1, None, 35.0, position=(11.0, 1.0))))
        run.append_event(used(Reading(2, 4, float("nan"))))
    return path


def bag_run(path: Path, readings: int = 30, **config: Any) -> Path:
    """A replayed bag: readings, nothing decided."""
    with RunDirectory.create(path, {"map": GRID["map"], "belief": GRID["belief"], **config}) as run:
        run.append_event(STARTED)
        for i in range(readings):
            run.append_event(used(Reading(10**9 * i, i % 12, 30.0 + i % 5)))
    return path


def unpack(packed: dict[str, Any]) -> FloatArray:
    """Undo `payload.pack`."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), dtype=np.uint8)
    high, low = planes.reshape(2, packed["rows"], packed["columns"]).astype(np.uint16)
    levels = np.cumsum((high << 8) | low, axis=0, dtype=np.uint16)
    return np.asarray(packed["low"] + packed["step"] * levels.astype(np.float64))


def plan(*waypoints: int, hit: bool = False) -> Plan:
    return Plan(
        waypoints=waypoints,
        lower=2.0,
        upper=2.5,
        expanded=3,
        seconds=0.01,
        deadline_hit=hit,
        path=waypoints[:1],
        horizon=2,
        candidates=(
            CandidateValue(waypoints[0], 2.0, 2.5),
            CandidateValue(waypoints[0] + 4, 1.0, 1.5),
        ),
    )


def record(stage: int, plan: Plan, value: float) -> dict[str, Any]:
    return stage_record(
        stage=stage, plan=plan, name="a", position=(0.0, 0.0), value=value, weights=[0.5, 0.5]
    )


def data_of(page: Path) -> dict[str, Any]:
    """What the page hands to its scripts."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data
