from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("rosbags", reason="the extra [bag] is not installed")

import yaml
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from std_srvs.srv import Trigger

from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.replay import Bag
from gp_active_sensing.replay.run import replay_bag
from gp_active_sensing.ros.journal_topic import DEPTH
from gp_active_sensing.util.resources import find_resource
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import Probe, sensing, write_scenario

OF_EVERY_NODE = {"/clock", "/rosout", "/parameter_events"}


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


def test_a_recorded_mission_is_replayed_to_the_same_decisions(ros: Ros, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "tiny.yaml", dropout=0.2, budget=6)
    words = [f"scenario:={scenario}", "speed_factor:=20", "exit_at_end:=true"]
    words += [f"run_dir:={tmp_path / 'run'}"]
    waiting = tmp_path / "params.yaml"  # the recorder is there before the mission begins
    waiting.write_text("active_sensing:\n  ros__parameters:\n    mission: {begin: false}\n")
    words.append(f"params_file:={waiting}")
    wanted = {
        "/reading",
        "/pose",
        "/next_waypoint",
        "/active_sensing/field",
        "/active_sensing/journal",
    }
    # Made early: right after a service of another process was found, an answer may get lost.
    client = ros.node().create_client(Trigger, "/active_sensing/start")
    recorder = [sys.executable, "-m", "tests.ros.ros2_bag", "bag", "record", "--use-sim-time"]
    recorder += ["--output", str(tmp_path / "bag"), "--regex", "^/(reading|pose|next_|active_)"]
    recorder += ["--qos-profile-overrides-path", str(find_resource("launch", "record_qos.yaml"))]
    with subprocess.Popen(recorder, stdout=subprocess.PIPE, text=True) as recording:
        assert recording.stdout is not None
        with subprocess.Popen(
            [sys.executable, "-m", "gp_active_sensing.ros.runner", "traffic_sim", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            missing = {f"recording {topic} (" for topic in wanted}
            for line in recording.stdout:
                missing -= {words for words in missing if words in line}
                if not missing:
                    break
            assert ros.call(client, Trigger.Request()).success
            output, _ = process.communicate()
        assert process.returncode == 0, output
        recording.send_signal(signal.SIGINT)
        recording.communicate()
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

    def frames() -> list[dict[str, Any]]:
        return [frame for message in late for frame in json.loads(message.data)]

    def readings() -> list[Any]:
        took = [entry for frame in frames() for entry in frame.get("took", ())]
        return [entry for entry in took if entry[0] == "r"]

    wait_until(lambda: len(readings()) == 3, "all readings, for who comes late")
    heard = frames()
    assert "setup" in heard[0]
    assert heard[0]["setup"]["topics"] == {"": {"reading": "/reading", "pose": "/pose"}}
    assert heard[0]["setup"]["config"]["budget"]["readings"] == 3
    numbers = [frame["n"] for frame in heard if "setup" not in frame]
    assert numbers == list(range(1, len(numbers) + 1))
    assert not node.callback_errors
