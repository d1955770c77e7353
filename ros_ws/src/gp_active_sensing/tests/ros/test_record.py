"""``record:=DIR`` starts ``ros2 bag record``, and what that writes can be replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("rosbags", reason="the extra [bag] is not installed")

import yaml
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from std_srvs.srv import Trigger

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.replay import Bag
from gp_active_sensing.replay.run import replay_bag
from gp_active_sensing.ros.environment import REFUSED
from gp_active_sensing.ros.journal_topic import DEPTH
from gp_active_sensing.ros.runner import main
from gp_active_sensing.util.resources import find_resource
from tests.cases import case
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.launched import processes
from tests.ros.probe import Probe, sensing, write_scenario
from tests.ros.ros2_bag import options, ros2_bag  # noqa: F401  a fixture

with_ros2_bag = pytest.mark.usefixtures("ros2_bag")
OF_EVERY_NODE = {"/clock", "/rosout", "/parameter_events"}


def test_without_ros2_bag_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for launch in ["probe", "traffic_sim"]:
        with case(launch):
            monkeypatch.setenv("PATH", str(tmp_path))
            assert main([launch, f"record:={tmp_path / 'bag'}"]) == REFUSED
            said = capfd.readouterr()
            assert "record: needs the command `ros2 bag`" in said.err
            assert "sudo apt install ros-$ROS_DISTRO-rosbag2" in said.err
            assert not said.out
            assert list(tmp_path.iterdir()) == []
            with pytest.raises(MissingDependencyError):
                processes(launch, record="bag")


@with_ros2_bag
def test_all_topics_of_the_node_are_recorded(ros: Ros, tmp_path: Path) -> None:
    node = sensing(ros, "probes:=[probe_1, probe_2]")
    wait_active(node)
    topics = {end.topic_name for end in (*node.publishers, *node.subscriptions)} - OF_EVERY_NODE
    assert {"/probe_1/reading", "/probe_2/next_waypoint", "/active_sensing/journal"} <= topics
    for launch in ("probe", "traffic_sim"):
        recorder = processes(launch, record=str(tmp_path / "bag"))["recorder"]
        regex = options(list(recorder.command[1:])).regex
        assert {topic for topic in topics if not regex.search(topic)} == set()


def test_the_whole_journal_is_asked_for() -> None:
    """It is sent from its beginning, to a recorder that is as deep and asks for it."""
    text = find_resource("launch", "record_qos.yaml").read_text("utf-8")
    assert yaml.safe_load(text) == {
        "/active_sensing/journal": {
            "history": "keep_last",
            "depth": DEPTH,
            "reliability": "reliable",
            "durability": "transient_local",
        }
    }


def waiting_for_start(folder: Path) -> Path:
    """Return a parameter file: the recorder is there before the mission begins."""
    path = folder / "params.yaml"
    path.write_text("active_sensing:\n  ros__parameters:\n    mission: {begin: false}\n")
    return path


@with_ros2_bag
def test_a_recorded_mission_is_replayed_to_the_same_decisions(ros: Ros, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "tiny.yaml", dropout=0.2, budget=6)
    words = [f"scenario:={scenario}", "speed_factor:=20", "exit_at_end:=true"]
    words += ["plan_ahead:=true", f"run_dir:={tmp_path / 'run'}"]
    words += [f"record:={tmp_path / 'bag'}", f"params_file:={waiting_for_start(tmp_path)}"]
    wanted = {
        "/reading",
        "/pose",
        "/next_waypoint",
        "/active_sensing/field",
        "/active_sensing/journal",
    }
    lines: list[str] = []
    # Made early: right after a service of another process was found, an answer may get lost.
    client = ros.node().create_client(Trigger, "/active_sensing/start")
    with subprocess.Popen(
        [sys.executable, "-m", "gp_active_sensing.ros.runner", "traffic_sim", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        missing = {f"recording {topic} (" for topic in wanted}
        for line in process.stdout:
            lines.append(line)
            missing -= {words for words in missing if words in line}
            if not missing:
                break
        assert ros.call(client, Trigger.Request()).success
        lines += process.stdout
    output = "".join(lines)
    assert process.returncode == 0, output
    with Bag(tmp_path / "bag") as bag:
        held = {topic.name for topic in bag.topics}
    assert held >= wanted, output
    assert not held & OF_EVERY_NODE
    found = replay_bag(tmp_path / "bag", tmp_path / "again").summary["replay"]["comparison"]
    assert found["differences"] == []
    assert found["decisions"] == found["decisions_equal"] >= 6
    assert found["readings"] == found["readings_equal"] >= 6
    before, after = (RunDirectory.open(tmp_path / name).records() for name in ("run", "again"))
    for record in after:
        del record["information"]
        record.pop("went", None)
        record.pop("went_name", None)
    assert before == after, "to the bit, all of it"


def test_the_journal_topic_says_what_was_used(ros: Ros, tmp_path: Path) -> None:
    node = sensing(ros, "budget.readings:=3")
    probe = Probe(ros).connect()
    probe.obedient = True
    probe.pose(0.0)
    probe.wait_value("state", "ended")
    profile = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    late = ros.hear(String, "/active_sensing/journal", profile)
    wait_until(lambda: any('"end"' in m.data for m in late), "the end, for who comes late")
    heard = [frame for message in late for frame in json.loads(message.data)]
    assert "setup" in heard[0]
    assert heard[0]["setup"]["topics"] == {"": {"reading": "/reading", "pose": "/pose"}}
    assert heard[0]["setup"]["config"]["budget"]["readings"] == 3
    took = [entry for frame in heard for entry in frame.get("took", ())]
    assert len([entry for entry in took if entry[0] == "r"]) == 3
    numbers = [frame["n"] for frame in heard if "setup" not in frame]
    assert numbers == list(range(1, len(numbers) + 1))
    assert not node.callback_errors
