"""The same scenario gives the same mission by every way: places, readings, what is driven.

``golden.json`` holds what the shipped scenarios gave. Where it changes, the change is to be
explained; ``python -m tests.unit.sim.test_one_engine`` writes it again.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.sim import Scenario, load_scenario, run_scenario
from gp_active_sensing.sim.runner import SimulationRunner

GOLDEN = Path(__file__).with_name("golden.json")
NAMES = ("line", "lake", "bloom", "terrain", "warehouse", "hot_spot", "plume", "town")
QUICK = ("policy={name: ie}", "limit.expansions=5", "budget={readings: 8}")
CASES = [(name, probes) for name in NAMES for probes in (1, 2)]


def scenario(name: str, probes: int) -> Scenario:
    return load_scenario(name, overrides=[*QUICK, f"probes={probes}"])


def played(of: Scenario, period: float | None = None) -> SimulationRunner:
    runner = SimulationRunner(of, period=period)
    runner.on_stage = lambda record: None
    events: list[Any] = []
    runner.parts.recorder.listener = lambda event: events.append(to_line(event))
    assert runner.run(1e6)
    runner.events = events  # type: ignore[attr-defined]
    return runner


def result(runner: SimulationRunner) -> dict[str, Any]:
    events = runner.events  # type: ignore[attr-defined]
    return {
        "places": [list(sent) for sent in runner.sent],
        "readings": [[e["location"], e["value"]] for e in events if e["event"] == "reading"],
        "metres": runner.mission.driven.metres,
        "seconds": runner.mission.driven.seconds,
    }


@cache
def found(name: str, probes: int) -> dict[str, Any]:
    return result(played(scenario(name, probes)))


def test_places_readings_and_costs_are_those_on_record() -> None:
    for name, probes in CASES:
        golden = json.loads(GOLDEN.read_text("utf-8"))[f"{name} {probes}"]
        new = found(name, probes)
        assert new["places"] == golden["places"]
        assert [place for place, _ in new["readings"]] == [place for place, _ in golden["readings"]]
        values = [[value for _, value in known["readings"]] for known in (new, golden)]
        assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-9)
        assert new["metres"] == pytest.approx(golden["metres"], abs=1e-6)
        assert new["seconds"] == pytest.approx(golden["seconds"], abs=1e-6)


def test_poses_at_intervals_as_of_a_robot_change_nothing() -> None:
    # Not the line: its probe may begin anywhere, and a robot stands somewhere.
    for name in ("lake", "warehouse", "plume", "town"):
        of = scenario(name, 1)
        period = 0.25
        runner = played(of, period)
        new, old = result(runner), found(name, 1)
        assert new["places"] == old["places"]
        assert [place for place, _ in new["readings"]] == [place for place, _ in old["readings"]]
        stages = len(new["places"])
        assert new["seconds"] == pytest.approx(old["seconds"], abs=period * (stages + 1))
        assert new["metres"] == pytest.approx(old["metres"], rel=0.02)


def test_a_run_directory_holds_the_same_mission(tmp_path: Path) -> None:
    for name in ("lake", "warehouse"):
        summary = run_scenario(scenario(name, 1), tmp_path / name)
        events = RunDirectory.open(tmp_path / name).events()
        readings = [[e["location"], e["value"]] for e in events if e["event"] == "reading"]
        assert readings == found(name, 1)["readings"]
        assert summary.metres == found(name, 1)["metres"]
        assert summary.seconds == found(name, 1)["seconds"]


def main() -> None:
    golden = {f"{name} {probes}": found(name, probes) for name, probes in CASES}
    GOLDEN.write_text(json.dumps(golden, indent=None, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()
