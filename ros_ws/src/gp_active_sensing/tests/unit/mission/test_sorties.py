from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission.inbox import RawBattery
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.sorties import CHANGING
from gp_active_sensing.records.events import Event
from gp_active_sensing.records.journal import read_journal
from gp_active_sensing.records.run_directory import JOURNAL
from gp_active_sensing.sim.runner import SimulationRunner
from gp_active_sensing.sim.scenario import Scenario, scenario_from_mapping
from tests.journals import write_events
from tests.robots import SECOND, Robot, Voyage

BELIEF = {"length_scales": [20.0], "signal_std": [1.0], "noise_std": [0.1]}


def scenario(policy: str, sortie: dict[str, float], seed: int = 1, **more: Any) -> Scenario:
    sections: dict[str, Any] = {
        "name": "sorties",
        "seed": seed,
        "map": {"kind": "grid", "columns": 8, "rows": 6, "spacing": 10.0, "speed": 2.0},
        "field": {"kind": "gp", "length_scale": 20.0},
        "belief": BELIEF,
        "policy": {"name": policy},
        "budget": {"metres": 500.0},
        "limit": {"expansions": 10},
        "probe": {"start": "random", "sortie": sortie},
        **more,
    }
    return scenario_from_mapping(sections, source="test")


def drive(runner: SimulationRunner) -> dict[str, float]:
    """Run a mission to its end; return the largest part of a battery that each probe used."""
    most = dict.fromkeys(runner.batteries, 0.0)
    while runner.mission.state != "ended":
        runner.step()
        for name, battery in runner.batteries.items():
            most[name] = max(most[name], battery.used)
    runner.close()
    return most


@pytest.mark.parametrize(
    ("policy", "sortie", "more"),
    [
        ("tour", {"metres": 160.0}, {}),
        ("bal", {"metres": 160.0}, {"drive": {"turn_radius": 3.0}}),
        ("lawnmower", {"seconds": 130.0}, {"sensor": {"seconds": 5.0}}),
        ("max_entropy", {"metres": 160.0}, {"probes": 3, "budget": {"metres": 300.0}}),
        ("tour", {"metres": 160.0, "seconds": 90.0}, {"probes": 2, "budget": {"readings": 40}}),
    ],
)
def test_no_sortie_overruns_its_battery(
    policy: str, sortie: dict[str, float], more: dict[str, Any]
) -> None:
    runner = SimulationRunner(scenario(policy, sortie, **more))
    most = drive(runner)
    assert max(most.values()) <= 1.0 + 1e-6
    for probe in runner.mission.probes.values():
        assert probe.sortie.number > 1
        assert probe.standing() == probe.own_budget.end or probe.gone
        assert probe.own_budget.metres is None or probe.own_budget.metres >= -1e-6


def test_the_tour_promises_what_all_sorties_read_and_needs_few() -> None:
    runner = SimulationRunner(scenario("tour", {"metres": 220.0}, budget={"metres": 2000.0}))
    while not runner.sent:
        runner.step()
    (route, *_) = runner.mission.probe.plan.routes  # type: ignore[union-attr]
    assert route.readings == 48, "all places, in several sorties"
    drive(runner)
    assert runner.mission.loop.belief.observed.all()
    assert runner.mission.driven.metres < 900.0


class Powered(Voyage):
    """A robot with a battery, whose charge is published each second."""

    lasts = 200.0
    """Metres of a charge."""
    since = 0.0
    lowest = 1.0

    def step(self) -> None:
        level = 1.0 - (self.robot.metres - self.since) / self.lasts
        self.lowest = min(self.lowest, level)
        if self.now_ns % SECOND < SECOND * self.dt:
            self.mission.inbox.put(RawBattery(self.now_ns, level), 1e-9 * self.now_ns)
        super().step()
        if self.mission.state == "paused":
            self.since = self.robot.metres
            assert self.mission.resume() == ""


def voyage(**more: Any) -> Powered:
    config = {
        "map": {"kind": "grid", "columns": 8, "rows": 8, "spacing": 5.0},
        "policy": {"name": "bal"},
        "budget": {"metres": 500.0},
        "belief": BELIEF,
        "limit": {"expansions": 5},
        **more,
    }
    return Powered(config, Robot(0.0, 0.0, speed=2.0, acceleration=math.inf))


def test_a_probe_comes_home_while_its_charge_lasts() -> None:
    run = voyage(battery={"topic": "battery_state", "reserve": 0.2})
    sortie = run.mission.probe.sortie
    assert run.run(2000.0)
    assert sortie.number >= 3
    assert sortie._per_metre == pytest.approx(1.0 / run.lasts, rel=0.1)
    assert 0.19 < run.lowest < 0.35
    assert math.hypot(run.robot.x, run.robot.y) < 2.0


def test_a_charge_that_falls_on_the_way_sends_the_probe_home() -> None:
    run = voyage(
        battery={"topic": "battery_state"}, policy={"name": "tour"}, limit={"expansions": 20}
    )
    assert run.run(200.0, lambda: run.robot.metres > 60.0)
    run.lasts = 110.0  # wind
    assert run.run(400.0, lambda: run.mission.probe.sortie.number > 1)
    assert run.lowest > 0.0


def books(probe: ProbeState) -> tuple[Any, ...]:
    """Return what has to survive a restart."""
    own = {key: str(value) for key, value in vars(probe.sortie).items()}
    return own, probe.remaining, probe.own_budget, probe.resting, probe.home, probe.plan


@pytest.mark.parametrize("topic", ["", "battery_state"])
def test_a_restart_at_any_event_changes_nothing(tmp_path: Path, topic: str) -> None:
    more = {"battery": {"topic": topic}, "probe": {"sortie": {"metres": 90.0, "seconds": 120.0}}}
    run = voyage(**more, budget={"metres": 200.0}, run_dir=str(tmp_path / "run"))
    seen: dict[int, Any] = {}
    lines = 2  # it has begun
    recorder = run.parts.recorder

    def heard(event: Event) -> None:
        nonlocal lines
        lines += 1

    recorder.listener = heard
    while run.mission.state != "ended":
        run.step()
        seen[lines] = books(run.mission.probe)
    recorder.close()
    assert run.mission.probe.sortie.number == 2
    assert lines == len(read_journal(tmp_path / "run" / JOURNAL).events)
    for lines in np.random.default_rng(1).permutation(sorted(seen)[:-1])[:12].tolist():
        copy = tmp_path / f"cut{lines}"
        shutil.copytree(tmp_path / "run", copy)
        write_events(copy / JOURNAL, read_journal(copy / JOURNAL).events[:lines])
        for name in ("summary.json", "records.jsonl"):
            (copy / name).unlink(missing_ok=True)
        again = voyage(**more, budget={"metres": 200.0}, run_dir=str(copy))
        assert books(again.mission.probe) == seen[lines]
        again.parts.recorder.close()


def test_of_several_probes_one_changes_its_battery_while_the_others_go_on() -> None:
    runner = SimulationRunner(scenario("max_entropy", {"metres": 120.0}, probes=2))
    mission = runner.mission
    gone: list[str] = []
    while not gone:
        runner.step()
        gone = [name for name, probe in mission.probes.items() if probe.gone == CHANGING]
    assert mission.state == "running"
    assert mission.fleet.away(mission.now_ns) == gone
    assert mission.resume("a mechanic") == ""
    assert not mission.probes[gone[0]].gone
    assert mission.probes[gone[0]].sortie.number == 2
    assert mission.resume() != "", "nothing is to be resumed any more"
