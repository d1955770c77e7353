from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from geometry_msgs.msg import PoseStamped

from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from gp_active_sensing.ros.simulator_node import SimulatorNode
from tests.cases import case
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import write_scenario
from tests.unit.sim.scenarios import GRID, mapping


@pytest.fixture
def simulator(ros: Ros, tmp_path: Path) -> Iterator[SimulatorNode]:
    """A simulator whose time does not run, at place 0 of a grid of 4 x 2 places."""
    scenario = write_scenario(tmp_path / "tiny.yaml")
    node = SimulatorNode(cli_args=["--ros-args", "-p", f"scenario:={scenario}"])
    node.configure()  # nobody spins it
    yield node
    node.release()
    node.stop_forwarding_logs()
    node.destroy_node()


def waypoint(x: float, *, stamp: int = 5, frame: str = "map") -> PoseStamped:
    return outputs.waypoint_message((x, 0.0, 0.0), frame, stamp * 10**9)


def test_the_same_waypoint_again_is_no_second_visit(simulator: SimulatorNode) -> None:
    player = simulator.players[""]
    for _ in range(3):
        simulator.drive("", waypoint(0.0))
    assert len(player.step(0.1).readings) == 1
    simulator.drive("", waypoint(0.0, stamp=6))
    assert len(player.step(0.1).readings) == 1, "a new stamp asks for another visit"


def test_a_waypoint_that_is_none_of_the_map_s_is_said_and_not_used(
    simulator: SimulatorNode, capfd: pytest.CaptureFixture[str]
) -> None:
    player = simulator.players[""]
    simulator.drive("", waypoint(10.0, frame="odom"))
    simulator.drive("", waypoint(14.0))
    assert player.goal is None
    said = capfd.readouterr().err
    assert "waypoint in frame 'odom', the map is in 'map'" in said
    assert "waypoint (14.0, 0.0) is none of the map's" in said


def test_a_mission_of_two_nodes_changes_the_battery_at_home(ros: Ros, tmp_path: Path) -> None:
    """The planner hears only the charge; the simulator changes the battery of a probe at home."""
    path = tmp_path / "boat.yaml"
    sortie = {"metres": 110.0, "seconds": None}
    sections: dict[str, Any] = {
        "probe": {"start": 0, "end": 0, "speed": 2.0, "sortie": sortie},
        "budget": {"readings": None, "metres": 190.0},
        "policy": {"name": "tour"},
        "limit": {"expansions": 20},
    }
    path.write_text(yaml.safe_dump(mapping(GRID, **sections)), encoding="utf-8")
    given = ["--ros-args", "-p", f"scenario:={path}", "-p", "use_sim_time:=true"]
    fast = ["-p", "speed_factor:=20.0"]
    planner = ActiveSensingNode(cli_args=[*given, "-p", "battery.topic:=battery_state"])
    ros.add(planner)
    wait_active(planner)
    simulator = SimulatorNode(cli_args=["--ros-args", "-p", f"scenario:={path}", *fast])
    ros.add(simulator)
    wait_active(simulator)
    mission, (battery,) = planner.mission, simulator.batteries.values()
    most = [0.0]
    assert battery is not None

    def over() -> bool:
        most[0] = max(most[0], battery.used)
        if mission.state == "paused" and battery.level == 1.0:  # it was changed
            mission.resume()
        return mission.state == "ended"

    wait_until(over, "the end of the mission")
    assert mission.probe.sortie.number >= 2
    assert most[0] <= 1.0
    assert mission.driven.metres <= 190.0
    assert mission.probe.standing() == 0


@pytest.fixture
def three(tmp_path: Path) -> Path:
    path = tmp_path / "three.yaml"
    data = mapping(GRID, probes=3, policy={"name": "random"})
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


def probes(ros: Ros, kind: Any, *given: str) -> list[str]:
    words = [word for text in given for word in ("-p", text)]
    node = ros.add(kind(cli_args=["--ros-args", *words]))
    wait_active(node)
    return list(node.players if kind is SimulatorNode else node.mission.probes)


NAMES = ["probe_1", "probe_2", "probe_3"]


def test_both_nodes_have_the_probes_of_the_scenario(ros: Ros, three: Path) -> None:
    for words, expected in [((), NAMES), (("probes:=[one]",), ["one"]), (("probes:=[]",), [""])]:
        with case(words, expected):
            given = (f"scenario:={three}", *words)
            assert probes(ros, ActiveSensingNode, *given) == expected
            assert probes(ros, SimulatorNode, *given) == expected


def test_a_bag_is_not_said_to_be_of_as_many(ros: Ros, three: Path) -> None:
    assert probes(ros, ActiveSensingNode, f"scenario:={three}", "mission.follow:=probe") == [""]
