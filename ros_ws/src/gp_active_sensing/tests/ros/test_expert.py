"""An expert over ROS: asked, heard, waited for, refused; and nothing that it sends does harm."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.serialization import serialize_message
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from gp_active_sensing.messages.point_cloud import FIELDS, Points, points_of, query_points
from gp_active_sensing.ros import expert as of_expert
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.expert import ANSWER, places_at
from gp_active_sensing.ros.simulator_node import SimulatorNode
from gp_active_sensing.sim import build_world, load_scenario
from gp_active_sensing.topology import FreeTopology, make_grid
from tests.fuzzing import NUMBERS, mutated
from tests.pages import REPOSITORY, blocks
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import GRID, Probe, sensing, write_scenario

pytestmark = pytest.mark.usefixtures("asking")
EXPERTS_PAGE = REPOSITORY / "docs" / "changing.md"
ASKING = (*(text for text in GRID if "policy" not in text), "policy.name:=asking")


class Expert:
    """Answers by hand, or at once when told to."""

    def __init__(self, ros: Ros, *, at_once: bool = False) -> None:
        self.node = ros.node("expert")
        self.queries: list[PointCloud2] = []
        self.at_once = at_once
        self.status: dict[str, str] = {}
        self.summary = ""
        self.answers = self.node.create_publisher(PointCloud2, "expert/answer", 10)
        # What a plain expert would ask for, without a thought for durability.
        self.node.create_subscription(PointCloud2, "expert/query", self._on_query, 10)
        self.node.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.reliable()
        )

    def _on_query(self, message: PointCloud2) -> None:
        self.queries.append(message)
        if self.at_once:
            self.answer(message)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith(": expert"):
                self.status = {item.key: item.value for item in status.values}
                self.summary = status.message

    def answer(self, query: PointCloud2, value: float = 10.5, **header: Any) -> None:
        points = points_of(query)
        points["value"], points["variance"] = value, 0.04
        self.send(points, **header)

    def send(self, points: Points, *, frame: str = "map", t: int | None = None) -> None:
        stamp = int(self.node.get_clock().now().nanoseconds) if t is None else t
        header = Header(stamp=outputs.time_of(stamp), frame_id=frame)
        self.answers.publish(outputs.values_cloud(points, header))


def begun(ros: Ros, *parameters: str) -> tuple[Any, Expert, Probe]:
    one = sensing(ros, "expert.timeout:=1000.0", *parameters, given=ASKING)
    expert, probe = Expert(ros), Probe(ros).connect()
    ros.match(expert.answers)
    probe.pose(0.0)
    wait_until(lambda: expert.queries, "a question")
    return one, expert, probe


def test_the_decision_follows_the_answers(ros: Ros) -> None:
    one, expert, probe = begun(ros)
    (query,) = expert.queries
    assert [f.name for f in query.fields] == list(FIELDS)
    assert query.header.frame_id == "map"
    points = points_of(query)
    assert len(points) == 3
    assert set(points["x"].tolist()) <= {0.0, 10.0, 20.0, 30.0}
    assert np.isnan(points["value"]).all()
    assert np.isnan(points["variance"]).all()
    assert not probe.waypoints
    expert.answer(query)
    wait_until(lambda: probe.waypoints, "the waypoint")
    mission = one.mission
    assert mission.consulting.books.counts["answered"] == 3
    assert mission.loop.belief.observed.sum() == 0
    wait_until(lambda: expert.status.get("answered") == "3", "its status")
    assert expert.summary == "ok"
    assert not one.callback_errors


def test_a_silent_expert_is_waited_for_until_the_time_out(ros: Ros) -> None:
    one = sensing(ros, "expert.timeout:=0.4", given=ASKING)
    probe = Probe(ros).connect()
    probe.pose(0.0)
    wait_until(lambda: probe.waypoints, "the waypoint")
    assert one.mission.consulting.books.counts["unanswered"] == 3
    expert = Expert(ros)
    wait_until(lambda: expert.status.get("unanswered") == "3", "its status")
    assert "not answered in time" in expert.summary
    # It came late and hears the question all the same, if it asks for what was said before.
    late = ros.hear(PointCloud2, "expert/query", qos.latched())
    wait_until(lambda: late, "the last question")
    expert.answer(late[0])
    wait_until(lambda: expert.status.get("late") == "3", "the late answers")


def test_what_is_wrong_is_counted_and_not_used(ros: Ros) -> None:
    one, expert, probe = begun(ros)
    (query,) = expert.queries
    points = points_of(query)
    points["value"], points["variance"] = 10.0, 0.04
    wrong = points.copy()
    wrong["value"][0], wrong["variance"][1], wrong["x"][2] = math.nan, 0.0, 1e6
    expert.send(wrong)
    expert.send(points, frame="odom")
    expert.send(points, t=int(2e18))
    expert.send(points, t=1)
    rejected = one.mission.consulting
    wait_until(lambda: sum(rejected.rejected.values()) == 12, "the rejections")
    assert rejected.rejected == {
        "not_finite": 1,
        "bad_variance": 1,
        "off_map": 1,
        "wrong_frame": 3,
        "stamp_ahead": 3,
        "too_old": 3,
    }
    assert not probe.waypoints
    expert.send(points, t=0)  # its stamp was forgotten: the time of arrival
    wait_until(lambda: probe.waypoints, "the waypoint")
    wait_until(lambda: expert.status.get("rejected_too_old") == "3", "its status")
    assert "12 rejected" in expert.summary


# -- absurd messages ---------------------------------------------------------------


def absurd(rng: random.Random, query: PointCloud2) -> PointCloud2:
    """Return an answer with something wrong, or with nothing wrong."""
    points = points_of(query)
    for name in FIELDS:
        if rng.random() < 0.3:
            points[name] = [rng.choice(NUMBERS) for _ in points]
    if rng.random() < 0.5:
        points["value"], points["variance"] = rng.uniform(0.0, 20.0), 0.1
    frame = rng.choice(("map", "map", "map", "/map", "", "x" * 300))
    stamp = rng.choice((0, 0, 0, 5, 10**18, 2**62))
    message = outputs.values_cloud(points, Header(stamp=outputs.time_of(stamp), frame_id=frame))
    how = rng.randrange(12)
    if how == 0:
        message.data = message.data[: rng.randrange(len(message.data))]
    elif how == 1:
        name = rng.choice(("width", "height", "point_step", "row_step"))
        setattr(message, name, rng.choice((0, 1, 7, 2**16, 2**32 - 1)))
    elif how == 2:
        message.is_bigendian = True
    elif how == 3:
        message.fields = message.fields[: rng.randrange(5)]
    elif how == 4:
        field = rng.choice(message.fields)
        attribute = rng.choice(("offset", "count", "datatype"))
        most = 255 if attribute == "datatype" else 2**32 - 1
        setattr(field, attribute, rng.choice((0, 1, 3, 9, 40, most)))
    elif how == 5:
        message.fields[rng.randrange(5)].name = rng.choice(("", "x", "Value", "ü" * 100))
    return message


@pytest.mark.long
def test_fuzzed_answers(ros: Ros, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_expert, "MOST_ANSWERS", 1e9)
    monkeypatch.setitem(of_expert.MOST_BYTES, "answer", 100_000)
    one, expert, _ = begun(ros)
    rng = random.Random("answers")
    mission, asking = one.mission, one.results.asking
    (query,) = expert.queries
    stream = mutated(rng, {"answer": lambda: absurd(rng, query)}, serialize_message)
    one.deactivate()  # nothing else steps the mission
    now = int(one.get_clock().now().nanoseconds)
    for number in range(4000):
        _, data = next(stream)
        asking.on_bytes(data)
        if number % 50 == 0:
            mission.step(now + number)
    while len(mission.inbox):
        mission.step(now + 5000)
    refused = mission.inbox.refused
    assert {"answer_undecodable", "answer_unreadable", "answer_too_large"} <= set(refused)
    used = mission.consulting.books.counts["used"]
    rejected = mission.consulting.rejected
    assert used > 100
    assert {"not_finite", "bad_variance", "wrong_frame", "off_map"} <= set(rejected), rejected
    # Everything was used or counted.
    assert sum(refused.values()) + asking.messages == 4000
    assert mission.inbox.received["answers"] - sum(refused.values()) == used + sum(
        rejected.values()
    )
    assert not one.callback_errors
    mean, variance = mission.loop.belief.predict()
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()


# -- the simulator's ---------------------------------------------------------------


def simulated(path: Path, **expert: Any) -> Path:
    scenario = write_scenario(path)
    section = {"kind": "model", "noise_std": 0.1, "timeout": 2.0, **expert}
    text = scenario.read_text("utf-8").replace("name: ie", "name: sparq_gp_ucb")
    text = text.replace("noise_std: 0.2, ", "noise_std: 0.2, on_the_way: false, ")
    scenario.write_text(f"{text}expert: {json.dumps(section)}\n", encoding="utf-8")
    return scenario


def test_the_simulator_answers_at_simulated_time(ros: Ros, tmp_path: Path) -> None:
    scenario = simulated(tmp_path / "tiny.yaml", delay=1.5, noise_std=1e-6)
    given = ["--ros-args", "-p", f"scenario:={scenario}", "-p", "speed_factor:=20.0"]
    one = ros.add(SimulatorNode(cli_args=given))
    heard = ros.hear(PointCloud2, "expert/answer")
    questions = ros.node().create_publisher(PointCloud2, "expert/query", qos.latched())
    ros.match(questions)
    grid = make_grid(4, 2, 10.0)
    points = query_points(grid, [5, 2])
    for wrong in (Header(frame_id="odom"), Header(frame_id="map")):
        cloud = outputs.values_cloud(points, wrong)
        if wrong.frame_id == "map":
            cloud.fields = cloud.fields[:3]
        questions.publish(cloud)
    questions.publish(outputs.values_cloud(points, Header(frame_id="map")))
    wait_until(lambda: heard, "the answer")
    found = points_of(heard[0])
    assert found["x"].tolist() == points["x"].tolist()
    assert found["variance"].tolist() == pytest.approx([1e-12, 1e-12])
    truth = build_world(load_scenario(str(scenario))).truth.at(0.0)[[5, 2]]
    assert found["value"] == pytest.approx(truth, abs=1e-4)
    (player,) = one.players.values()
    assert 1e-9 * player.now_ns - 1.5 >= heard[0].header.stamp.sec
    assert len(heard) == 1
    assert not one.callback_errors


def test_which_places_a_question_means() -> None:
    road = FreeTopology("road", "map", ["there", "back", "on"], [[0, 0], [0, 0], [9, 0]])
    assert places_at(road, query_points(road, [2, 0, 1])) == [2, 0, 1]
    far = query_points(road, [0, 2])
    far["x"] = [500.0, math.nan]
    assert places_at(road, far) == []


@pytest.mark.long
def test_the_node_of_the_page_answers(ros: Ros, tmp_path: Path) -> None:
    """docs/changing.md#experts has an expert as a node: it is started, asked and heard."""
    if not EXPERTS_PAGE.exists():
        pytest.skip("the package lies outside its repository")
    (block,) = (b for b in blocks(EXPERTS_PAGE) if b.option("file") == "expert_node.py")
    program = tmp_path / "expert_node.py"
    program.write_text(block.text, "utf-8")
    one = sensing(ros, "expert.timeout:=1000.0", given=ASKING)
    process = subprocess.Popen([sys.executable, str(program)])
    try:
        publishers = f"a publisher of {ANSWER}"
        wait_until(lambda: one.count_publishers(f"/{ANSWER}"), publishers)
        wait_until(lambda: one.results.asking.status()[2]["experts"], "a subscriber")
        probe = Probe(ros).connect()
        probe.pose(0.0)
        wait_until(lambda: probe.waypoints, "the waypoint")
        assert one.mission.consulting.books.counts["answered"] == 3
    finally:
        process.kill()
        process.wait()
