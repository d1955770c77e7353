from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("rosbags", reason="the extra [bag] is not installed")

from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64, String

from gp_active_sensing.ros.bag_player_node import AHEAD
from gp_active_sensing.ros.environment import FAILED, REFUSED
from gp_active_sensing.ros.runner import child_environment
from tests.commanding import ran
from tests.replay.bags import message, write_bag
from tests.ros.conftest import Ros

START = 1_700_000_000_000_000_000
STEP = 20_000_000


def play(bag: Path, *words: str) -> subprocess.CompletedProcess[str]:
    player = (sys.executable, "-m", "gp_active_sensing.ros.bag_player_node", "--ros-args")
    return ran(*player, "-p", f"bag:='{bag}'", *words, env=child_environment(os.environ))


def numbers(count: int, topic: str = "/number") -> list[tuple[str, int, Any]]:
    return [
        (topic, START + i * STEP, message("std_msgs/msg/Float64", data=float(i)))
        for i in range(count)
    ]


def test_everything_is_played_in_order_with_the_bag_s_clock(ros: Ros, tmp_path: Path) -> None:
    note = ("/note", START - 1, message("std_msgs/msg/String", data="first"))
    bag = write_bag(tmp_path / "bag", [note, *numbers(60)], latched=("/note",))
    numbered, notes = ros.hear(Float64, "/elsewhere"), ros.hear(String, "/note")
    clock = ros.hear(Clock, "/clock")
    started = time.monotonic()
    words = ("-p", "topics:=['/number', '/note']", "-p", "rate:=2.0", "-r", "/number:=/elsewhere")
    done = play(bag, *words)
    took = time.monotonic() - started
    assert done.returncode == 0, done.stdout
    assert [m.data for m in numbered] == [float(i) for i in range(60)]
    assert [m.data for m in notes] == ["first"]
    assert "played 61 messages (/note: 1, /number: 60)" in done.stdout
    assert took > 59 * STEP * 1e-9 / 2.0
    assert f"playing {bag} at 2 times its own speed, about 1 s" in done.stdout
    ticks = [m.clock.sec * 10**9 + m.clock.nanosec for m in clock]
    assert ticks == sorted(ticks)
    assert len(ticks) > 20
    assert ticks[-1] - START == pytest.approx(59 * STEP, abs=20_000_000)


def test_what_cannot_be_played_is_left_out_and_counted(ros: Ros, tmp_path: Path) -> None:
    types = get_types_from_msg("float64 depth\n", "not_installed_msgs/msg/Sounding")
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(types)
    sounding = store.types["not_installed_msgs/msg/Sounding"](depth=1.0)
    extra = [("/depth", START + i, sounding) for i in range(5)]
    extra.append(("/no name\x1b[2J", START, message("std_msgs/msg/Float64", data=1.0)))
    time_of = message("builtin_interfaces/msg/Time", sec=1, nanosec=0)
    extra.append(("/clock", START, message("rosgraph_msgs/msg/Clock", clock=time_of)))
    bag = write_bag(tmp_path / "bag", [*numbers(10), *extra], extra_types=types)
    heard = ros.hear(Float64, "/number")
    done = play(bag, "-p", "rate:=4.0")
    assert done.returncode == 0, done.stdout
    assert len(heard) == 10
    assert "5 messages of /depth are left out" in done.stdout
    assert "not_installed_msgs cannot be imported" in done.stdout
    assert "played 10 messages (/number: 10); left out 7 (/clock: 1, /depth: 5," in done.stdout
    assert "/no name\\x1b[2J" in done.stdout
    assert "\x1b" not in done.stdout


def test_what_cannot_work_ends_with_one_clear_line(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", numbers(3))
    for words, reason in (
        ("topics:=['/nothing']", "reading_topic:="),
        ("wait:=0.3", "nobody subscribed to /number in 0.3 s"),
    ):
        done = play(bag, "-p", words)
        # Waiting in vain is nothing that was given.
        assert done.returncode == (FAILED if "nobody" in reason else REFUSED), done.stdout
        assert reason in done.stdout
        assert "Traceback" not in done.stdout


@pytest.mark.long
def test_a_damaged_bag_is_played_up_to_the_damage(ros: Ros, tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", numbers(10))
    metadata = bag / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("message_count: 10", "message_count: 12"))
    ros.hear(Float64, "/number")
    done = play(bag, "-p", "rate:=10.0")
    assert done.returncode == FAILED
    assert "its index promises 12 messages, 10 could be read" in done.stdout
    assert "played 10 messages (/number: 10)" in done.stdout


@pytest.mark.long
def test_without_a_listener_that_reports_rate_0_says_so(ros: Ros, tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", numbers(AHEAD + 10))
    ros.hear(Float64, "/number")
    done = play(bag, "-p", "rate:=0.0")
    assert done.returncode == FAILED
    assert "give a rate above 0" in done.stdout
    assert f"played {AHEAD} messages" in done.stdout
