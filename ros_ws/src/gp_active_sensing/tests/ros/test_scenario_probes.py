"""How many probes there are is said by the scenario, unless a parameter says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
from gp_active_sensing.ros.simulator_node import SimulatorNode
from tests.cases import case
from tests.ros.conftest import Ros, wait_active
from tests.unit.sim.scenarios import GRID, mapping

pytestmark = pytest.mark.ros


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


def test_both_nodes_have_the_same(ros: Ros, three: Path) -> None:
    for words, expected in [((), NAMES), (("probes:=[one]",), ["one"]), (("probes:=[]",), [""])]:
        with case(words, expected):
            given = (f"scenario:={three}", *words)
            assert probes(ros, ActiveSensingNode, *given) == expected
            assert probes(ros, SimulatorNode, *given) == expected


def test_a_bag_is_not_said_to_be_of_as_many(ros: Ros, three: Path) -> None:
    assert probes(ros, ActiveSensingNode, f"scenario:={three}", "mission.follow:=probe") == [""]
