from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.mission import changes
from gp_active_sensing.mission.clocks import ClockMonitor
from gp_active_sensing.types import Budget
from tests.cases import for_each
from tests.unit.mission.missions import Drive
from tests.unit.mission.worlds import SECOND, Rig, begun, drive_to, grid

DAY = 86_400


class Clocks:
    """Two clocks, set by hand; reading either of them may take a while."""

    def __init__(self, *, simulated: bool = False) -> None:
        self.seconds = 50.0
        self.wall = 1000.0
        self.slow = 0.0
        self.watch = ClockMonitor(self._now_ns, self._monotonic, lambda: simulated)

    def _monotonic(self) -> float:
        return self.seconds

    def _now_ns(self) -> int:
        self.pass_time(self.slow)
        now_ns = round(1e9 * self.wall)
        self.pass_time(self.slow)
        return now_ns

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += seconds

    def look(self, passed: float, step: float = 0.0) -> float:
        """Return the step [s] that is seen after some time and a step of the wall clock."""
        self.pass_time(passed)
        self.wall += step
        return 1e-9 * self.watch.read()[1]


@for_each("step", [0.7, 60.0, float(DAY), 1.7e9])
def test_a_step_is_seen_once_and_by_how_much(step: float) -> None:
    clocks = Clocks()
    clocks.look(0.0)
    assert clocks.look(0.05, step) == pytest.approx(step, rel=1e-6)
    assert clocks.look(0.05) == pytest.approx(0.0, abs=1e-6)


def test_a_machine_that_is_slow_between_two_looks_is_no_step() -> None:
    clocks = Clocks()
    clocks.slow = 5.0
    clocks.look(0.0)
    clocks.slow = 0.0
    assert clocks.look(0.05) == 0.0
    clocks.slow = 5.0
    assert clocks.look(0.05) == 0.0


def test_simulated_time_may_go_at_any_speed() -> None:
    clocks = Clocks(simulated=True)
    assert [clocks.look(0.05, 40.0) for _ in range(5)] == [0.0] * 5


def under_way(seconds: float = 1000.0) -> Rig:
    """Return a mission that has driven to its first place, and is sent to the second."""
    rig = begun(Rig(grid(5), budget=Budget(seconds=seconds)), 20.0)
    rig.reading(1.0, 5.0)
    rig.step(2.0)
    assert rig.mission.state == "running"
    return rig


def test_a_day_is_not_charged_and_the_mission_pauses() -> None:
    rig = under_way()
    before = rig.mission.driven.seconds
    changes.clock_stepped(rig.mission, DAY * SECOND, (DAY + 3) * SECOND)
    rig.step(DAY + 3.0)
    assert rig.mission.state == "paused"
    assert rig.mission.reason == "the clock went forward by 86400.000 s at once"
    (event,) = [e for e in rig.events if e["event"] == "clock"]
    assert event == {"event": "clock", "step_ns": DAY * SECOND, "stamp_ns": (DAY + 3) * SECOND}
    assert rig.mission.resume() == ""
    rig.step(DAY + 4.0)
    drive_to(rig, DAY + 10.0)
    assert rig.mission.state == "running"
    assert rig.mission.driven.seconds - before <= 10.0


def test_a_probe_is_not_lost_for_a_time_that_did_not_pass() -> None:
    rig = under_way()
    fleet = rig.mission.fleet
    fleet.record_pose(rig.probe, SECOND, 2 * SECOND)
    changes.clock_stepped(rig.mission, DAY * SECOND, (DAY + 3) * SECOND)
    assert fleet.last_pose_ns(rig.probe, (DAY + 3) * SECOND) == (DAY + 2) * SECOND


def test_a_restart_knows_of_the_pause_and_of_what_is_not_charged(tmp_path: Path) -> None:
    drive = Drive(tmp_path / "run", budget={"readings": 6, "seconds": 3600.0}).start()
    while len(drive.decided) < 3:
        drive.step()
    before = drive.built.mission.driven.seconds
    drive.now_ns += DAY * SECOND
    changes.clock_stepped(drive.built.mission, DAY * SECOND, drive.now_ns)
    drive.start_again()
    mission = drive.built.mission
    assert mission.state == "paused"
    assert "the clock went forward by 86400.000 s" in mission.reason
    mission.probe.drop_decision(drive.now_ns)
    assert mission.driven.seconds < before + 60.0
    assert mission.resume() == ""
    drive.run()
    assert mission.reason == "the budget of readings is spent"
    assert mission.driven.seconds < 600.0
