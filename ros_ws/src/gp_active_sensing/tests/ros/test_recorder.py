"""The node bag_recorder: what it writes can be replayed, also when it was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("rosbags", reason="the extra [bag] is not installed")

import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger

from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.replay import Bag
from gp_active_sensing.replay.run import replay_bag
from gp_active_sensing.ros import bag_recorder_node
from gp_active_sensing.ros.exit_codes import REFUSED
from gp_active_sensing.ros.runner import child_environment
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import write_scenario
from tests.waiting import LIMIT

pytestmark = pytest.mark.ros


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a recorder as a process of its own, which does not outlive the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "gp_active_sensing.ros.bag_recorder_node", "--ros-args"]
        for word in (f"bag:='{tmp_path / 'bag'}'", *words):
            command += ["-p", word]
        process = subprocess.Popen(
            command,
            env=child_environment(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        with process:
            process.kill()


def finished(process: subprocess.Popen[str], number: int = signal.SIGINT) -> str:
    process.send_signal(number)
    said, _ = process.communicate(timeout=LIMIT)
    return said


def waiting_for_start(folder: Path) -> Path:
    """Return a parameter file: the recorder is there before the mission begins."""
    path = folder / "params.yaml"
    path.write_text("active_sensing:\n  ros__parameters:\n    mission: {begin: false}\n")
    return path


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
        client = ros.node().create_client(Trigger, "/active_sensing/start")
        assert ros.call(client, Trigger.Request()).success
        lines += process.stdout
    output = "".join(lines)
    assert process.returncode == 0, output
    with Bag(tmp_path / "bag") as bag:
        held = {topic.name for topic in bag.topics}
    assert held >= wanted, output
    _, said, after = output.partition("recording /active_sensing/journal ")
    assert said, output
    late = [line for line in after.splitlines() if "[bag_recorder]" in line and "waiting" in line]
    assert not late, "also when the node has left"
    assert "/clock" not in held
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


def test_any_topic_of_any_quality_is_recorded_until_the_end(
    ros: Ros, tmp_path: Path, start: Start
) -> None:
    node = ros.node()
    kept = QoSProfile(depth=5, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    note = node.create_publisher(String, "note", kept)
    note.publish(String(data="before the recorder came"))
    sensor = node.create_publisher(Float64, "number", qos_profile_sensor_data)
    other = node.create_publisher(Float64, "other", 10)
    process = start("topics:=[note, number]")
    wait_until(sensor.get_subscription_count, "the recorder")
    wait_until(note.get_subscription_count, "the recorder")
    for i in range(50):
        sensor.publish(Float64(data=float(i)))
        other.publish(Float64(data=0.0))
    storage = tmp_path / "bag" / "bag.mcap"
    wait_until(lambda: storage.stat().st_size > 1000, "what was flushed")
    said = finished(process)
    assert process.returncode == 0, said
    assert "recorded 51 messages" in said
    with Bag(tmp_path / "bag") as bag:
        assert {t.name: (t.count, t.latched) for t in bag.topics} == {
            "/note": (1, True),
            "/number": (50, False),
        }
        decoded = [bag.decode(message).data for message in bag.messages()]
    assert [d for d in decoded if isinstance(d, float)] == [float(i) for i in range(50)]
    assert "before the recorder came" in decoded


def test_a_recorder_that_is_killed_leaves_a_bag_to_salvage(
    ros: Ros, tmp_path: Path, start: Start
) -> None:
    publisher = ros.node().create_publisher(Float64, "number", 1000)
    process = start("topics:=[number]", "flush:=0.1")
    wait_until(publisher.get_subscription_count, "the recorder")
    storage = tmp_path / "bag" / "bag.mcap"
    for i in range(200):
        publisher.publish(Float64(data=float(i)))

    def salvaged() -> int:
        with Bag(tmp_path / "bag", salvage=True) as bag:
            return bag.count

    wait_until(lambda: storage.stat().st_size > 1000 and salvaged() == 200, "200 flushed messages")
    finished(process, signal.SIGKILL)
    with Bag(tmp_path / "bag", salvage=True) as bag:
        assert [bag.decode(m).data for m in bag.messages()] == [float(i) for i in range(200)]
        assert bag.loss is not None
        assert bag.loss.lost is None


def test_a_folder_that_is_there_is_not_overwritten(ros: Ros, tmp_path: Path, start: Start) -> None:
    (tmp_path / "bag").mkdir()
    process = start()
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == REFUSED
    assert "cannot be made" in said
    assert "Traceback" not in said


def recorder(*words: str) -> bag_recorder_node.BagRecorder:
    """Return a recorder in this process, which nobody spins yet."""
    given = ["--ros-args", *(word for text in words for word in ("-p", text))]
    return bag_recorder_node.BagRecorder(cli_args=given)


def test_what_is_not_there_is_named(
    ros: Ros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bag_recorder_node, "ABSENT_SECONDS", 0.2)
    node = ros.node()
    node.create_publisher(Float64, "number", 10)
    ros.add(recorder(f"bag:='{tmp_path / 'bag'}'", "topics:=[number, humber]", "node:=nobody"))
    said = ""

    def named() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "waiting for" in said

    wait_until(named, "a word about what is missing")
    assert "waiting for node /nobody, topic /humber: not seen yet" in said
    assert f"/{node.get_name()}" in said


def test_the_journal_topic_says_what_was_used(ros: Ros, tmp_path: Path) -> None:
    from tests.ros.probe import Probe, sensing

    heard: list[dict[str, Any]] = []
    profile = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node = sensing(ros, "budget.readings:=3")
    probe = Probe(ros).connect()
    probe.obedient = True
    probe.pose(0.0)
    probe.wait_value("state", "ended")
    late = ros.node("late")
    late.create_subscription(
        String,
        "/active_sensing/journal",
        lambda message: heard.extend(json.loads(message.data)),
        profile,
    )
    events = lambda: [e for frame in heard for e in frame.get("events", ())]  # noqa: E731
    wait_until(lambda: any(e["event"] == "end" for e in events()), "the end, for who comes late")
    assert "setup" in heard[0]
    assert heard[0]["setup"]["topics"] == {"": {"reading": "/reading", "pose": "/pose"}}
    assert heard[0]["setup"]["config"]["budget"]["readings"] == 3
    took = [entry for frame in heard for entry in frame.get("took", ())]
    assert len([entry for entry in took if entry[0] == "r"]) == 3
    numbers = [frame["n"] for frame in heard if "setup" not in frame]
    assert numbers == list(range(1, len(numbers) + 1))
    assert not node.callback_errors


def test_a_recorder_that_is_stuck_says_where(
    ros: Ros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bag_recorder_node, "STUCK_SECONDS", 0.3)
    node = recorder(f"bag:='{tmp_path / 'bag'}'")

    def waiting_for_its_words() -> None:
        wait_until(lambda: node.is_stuck, "its words")

    waiting_for_its_words()
    said = capfd.readouterr().err
    assert "bag_recorder: no new topic has been looked for in " in said
    assert "in waiting_for_its_words" in said
    ros.add(node)
    wait_until(lambda: not node.is_stuck, "it to look again")


def test_a_disk_that_hangs_keeps_neither_messages_nor_the_end_waiting(
    ros: Ros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bag_recorder_node, "END_SECONDS", 0.1)
    begun, goes_on = threading.Event(), threading.Event()
    writers: list[bag_recorder_node.BagWriter] = []

    def hang(writer: bag_recorder_node.BagWriter, *message: Any) -> None:
        writers.append(writer)
        begun.set()
        assert goes_on.wait(LIMIT)

    monkeypatch.setattr(bag_recorder_node.BagWriter, "write", hang)
    number = ros.node().create_publisher(Float64, "number", 10)
    node = ros.add(recorder(f"bag:='{tmp_path / 'bag'}'", "topics:=[number]"))
    wait_until(number.get_subscription_count, "the recorder")
    try:
        number.publish(Float64())
        assert begun.wait(LIMIT)
        for _ in range(2):
            number.publish(Float64())
        wait_until(lambda: node.waiting == 3, "those that come while it writes")
        assert node.waiting_bytes == 36, "what is being written takes room, too"
        end = threading.Thread(target=node.release, daemon=True)
        end.start()
        end.join(LIMIT)
        assert not end.is_alive()
        assert node.lost == {"not_written": 3}
    finally:
        goes_on.set()
    wait_until(lambda: node.waiting == node.waiting_bytes == 0, "the disk to go on")
    writers[0].close()  # which the node did not wait for


@pytest.fixture
def elsewhere(ros: Ros) -> Iterator[rclpy.Context]:
    """A context like that of another process."""
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    yield context
    rclpy.shutdown(context=context)


def test_of_two_nodes_of_one_name_both_are_recorded(
    ros: Ros, start: Start, elsewhere: rclpy.Context
) -> None:
    """One that was killed is in the graph for a while, and knows nothing of what comes."""
    ros.node("sensing")
    another = rclpy.create_node("sensing", context=elsewhere)
    number = another.create_publisher(Float64, "number", 10)
    another.create_subscription(String, "note", lambda message: None, 10)
    note = ros.node().create_publisher(String, "note", 10)
    other = ros.node().create_publisher(String, "other", 10)
    process = start("node:=sensing")
    wait_until(number.get_subscription_count, "the recorder")
    wait_until(lambda: note.get_subscription_count() == 2, "the recorder")
    assert not other.get_subscription_count()
    said = finished(process)
    assert "waiting for" not in said
    another.destroy_node()
