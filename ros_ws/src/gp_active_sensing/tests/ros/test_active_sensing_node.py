"""The node among real topics, with a probe played by the test."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.msg import Transition
from rclpy.parameter import Parameter
from visualization_msgs.msg import MarkerArray

from gp_active_sensing.ros import diagnostics, qos
from gp_active_sensing.ros.environment import REFUSED
from tests.journals import events_of, records_of
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import Probe, sensing, started
from tests.ros.reports import check_command_reports
from tests.ros.test_node_base import Lifecycle
from tests.waiting import LIMIT


def test_a_mission_from_start_to_end(ros: Ros, tmp_path: Path) -> None:
    run = tmp_path / "run"
    node, probe = started(ros, "budget.readings:=3", f"run_dir:={run}")
    probe.obedient = True
    first = probe.waypoints[0]
    probe.hear(first)
    probe.wait_value("state", "ended")
    wait_until((run / "summary.json").exists, "the summary")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["status"] == "finished"
    assert summary["reason"] == "the budget of readings is spent"
    assert (summary["stages"], summary["observed"], summary["readings"]) == (3, 3, 3)
    latencies = summary["latency"]
    for latency in (latencies["reading_to_belief"], latencies["arrival_to_waypoint"]):
        assert latency["count"] == 3
        assert 0 < latency["median_ms"] <= latency["p99_ms"]
    records = records_of(run)
    assert [r["stage"] for r in records] == [1, 2, 3]
    for record in records:
        assert record["value"] == pytest.approx(10.0 + math.sin(record["position"][0]))
        assert record["lower"] <= record["upper"]
        assert record["rmspe"] is None, "no truth is known on a robot"
    events = [event["event"] for event in events_of(run)]
    assert events[0] == "start"
    assert events[-1] == "end"
    assert events.count("reading") == events.count("decision") == 3
    assert wait_until((run / "report.html").exists, "the report")
    # The last waypoint stays published: nothing came after it.
    assert len({(w.pose.position.x, w.header.stamp.nanosec) for w in probe.waypoints}) == 3
    assert node.exit_code is None


def test_what_is_published(ros: Ros) -> None:
    _, probe = started(ros)
    # One reading and no more: of a map that changes again only the last one may be heard.
    place, t = probe.waypoints[0].pose.position, probe.now_ns()
    probe.pose(place.x, place.y, t=t)
    probe.reading(10.0, t=t)
    wait_until(lambda: len(probe.heard["field"]) >= 2, "two fields")
    cloud = probe.heard["field"][-1]
    assert (cloud.width, cloud.header.frame_id) == (4, "map")
    weights = probe.heard["length_scale_belief"][-1]
    assert [d.label.split()[0] for d in weights.layout.dim] == [
        "length_scale=20",
        "length_scale=60",
    ]
    assert sum(weights.data) == pytest.approx(1.0)

    def shown() -> bool:
        kinds = {m.ns for message in probe.heard["map"] for m in message.markers if m.points}
        return kinds == {"topology", "visited", "planned", "next"}

    wait_until(shown, "the map with what was visited and is planned")
    waypoint = probe.waypoints[0]
    path = probe.heard["plan"][0]
    assert path.poses[-1].pose.position == waypoint.pose.position
    assert waypoint.header.frame_id == "map"


# -- who comes late --------------------------------------------------------------------------------


def test_a_late_joiner_gets_the_waypoint(ros: Ros) -> None:
    _, probe = started(ros)
    latched, plain = (ros.hear(PoseStamped, "next_waypoint", p) for p in (qos.latched(), 10))
    wait_until(lambda: latched and plain, "the waypoint of before")
    assert latched[0] == plain[0] == probe.waypoints[0]


def test_incompatible_quality_of_service_is_reported(
    ros: Ros, wait_said: Callable[..., str]
) -> None:
    _, probe = started(ros)
    ros.hear(MarkerArray, "active_sensing/probes", qos.latched())
    probe.wait_value("qos_~/probes: DURABILITY", "1")
    wait_said("make the subscriber volatile")


def test_topics_nobody_publishes_are_named(
    ros: Ros, wait_said: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "GRACE_SECONDS", 0.0)
    sensing(ros)
    wait_said("topic /pose: nobody", "topic /reading: nobody")


def test_a_topic_of_another_type_is_explained(ros: Ros, wait_said: Callable[..., str]) -> None:
    publish = (
        "import rclpy, std_msgs.msg as m; rclpy.init(); node = rclpy.create_node('other');"
        "p = node.create_publisher(m.Float64, 'reading', 10); input()"
    )  # a process of its own: one process has one type a topic
    with subprocess.Popen([sys.executable, "-c", publish], stdin=subprocess.PIPE) as other:
        tester = ros.node()
        wait_until(lambda: tester.count_publishers("reading"), "the publisher")
        sensing(ros)
        wait_said("published as std_msgs/msg/Float64, expected sensor_msgs/msg/Temperature")
        other.communicate(b"\n", timeout=LIMIT)


def test_a_pose_topic_that_falls_silent_is_named(
    ros: Ros, wait_said: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gp_active_sensing.ros.qos.SILENCE_SECONDS", 0.2)
    _, probe = started(ros)
    probe.reading(5.0)
    wait_said("waiting for topic /pose (silent for")
    wait_until(
        lambda: float(probe.values.get("seconds_since_pose", "0")) > 0.2, "the silence in numbers"
    )


def test_a_sensor_that_is_faster_than_its_queue_is_named(ros: Ros) -> None:
    node = sensing(ros, "reading.rate:=10.0")
    probe = Probe(ros).connect()
    probe.pose(0.0)

    def named() -> bool:
        probe.reading(3.0)
        return "a second and 20 are kept: set reading.rate to what is expected" in probe.problems

    wait_until(named, "what to set")
    assert not node.callback_errors


def test_messages_without_a_stamp_are_stamped_on_arrival(
    ros: Ros, wait_said: Callable[..., str]
) -> None:
    """As `ros2 topic pub` and many small drivers send them."""
    node = sensing(ros)
    probe = Probe(ros).connect()
    probe.pose(0.0, t=0)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    probe.reading(3.0, t=0)
    probe.wait_value("readings_accepted", "1")
    probe.wait_value("unstamped_pose", "1")
    probe.wait_value("unstamped_reading", "1")
    wait_said("messages of topic reading have a header without a stamp")
    assert not node.callback_errors


# -- services and lifecycle ------------------------------------------------------------------------


def test_finish_ends_the_mission_with_its_records(ros: Ros, tmp_path: Path) -> None:
    run = tmp_path / "run"
    node, probe = started(ros, f"run_dir:={run}")
    probe.reading(7.0)
    wait_until(lambda: len(probe.waypoints) == 2, "the second waypoint")
    probe.reading(8.0)
    probe.wait_value("readings_accepted", "2")
    answer = probe.call("finish")
    assert answer.success, answer.message
    # All of it is there when the answer comes.
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["reason"]) == ("finished", "asked to finish")
    assert (summary["readings"], summary["stages"]) == (2, 1)
    check_command_reports(run)
    probe.wait_value("state", "ended")
    refused = probe.call("finish")
    assert not refused.success
    assert "ended already (asked to finish)" in refused.message
    assert len(probe.waypoints) == 2, "the last waypoint stays published"
    assert node.exit_code is None


def test_a_pause_holds_the_robot_where_it_is_and_a_resume_sends_it_on(ros: Ros) -> None:
    sensing(ros)
    probe = Probe(ros).connect()
    probe.pose(10.0)
    probe.reading(7.0)
    wait_until(lambda: probe.waypoints, "a waypoint")
    wait_until(lambda: probe.pose(11.0) or len(probe.waypoints) >= 1, "a pose on the way")
    sent = probe.waypoints[-1].pose.position.x
    assert probe.call("pause").success
    wait_until(lambda: probe.waypoints[-1].pose.position.x in (10.0, 11.0), "its own position")
    assert probe.call("resume").success
    wait_until(lambda: probe.waypoints[-1].pose.position.x == sent, "the waypoint again")


def test_lifecycle_by_hand(ros: Ros, tmp_path: Path) -> None:
    node = sensing(ros, "autostart:=false", f"run_dir:={tmp_path / 'run'}")
    lifecycle = Lifecycle(ros, "active_sensing")
    assert lifecycle.state == "unconfigured"
    assert lifecycle.do(Transition.TRANSITION_CONFIGURE)
    probe = Probe(ros).connect()
    assert "not active" in probe.call("start").message
    (refused,) = node.set_parameters([Parameter("mission.coverage", value=0.7)])
    assert "deactivate and clean up" in refused.reason
    (done,) = node.set_parameters([Parameter("mission.reading_timeout", value=3.0)])
    assert done.successful
    assert node.mission.probe.arrival.timeout == 3.0
    assert lifecycle.do(Transition.TRANSITION_ACTIVATE)
    probe.pose(0.0)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    assert lifecycle.do(Transition.TRANSITION_DEACTIVATE)
    assert lifecycle.do(Transition.TRANSITION_CLEANUP)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "interrupted"
    assert lifecycle.state == "unconfigured"
    # The directory holds a mission now, which is not over: configuring again goes on with it ...
    assert lifecycle.do(Transition.TRANSITION_CONFIGURE)
    assert node.mission.decisions.stage == 1
    assert lifecycle.do(Transition.TRANSITION_CLEANUP)
    # ... or says so, and the node lives.
    node.set_parameters([Parameter("resume", value=False)])
    assert not lifecycle.do(Transition.TRANSITION_CONFIGURE)
    node.set_parameters([Parameter("run_dir", value=str(tmp_path / "second"))])
    assert lifecycle.do(Transition.TRANSITION_CONFIGURE)


def test_autostart_with_wrong_parameters_ends_with_the_reason(
    ros: Ros, capfd: pytest.CaptureFixture[str]
) -> None:
    for parameter, text in (
        ("policy.name:=ball", "Did you mean 'bal'"),
        ("reading.field:=temprature", "Did you mean 'temperature'"),
        ("reading.type:=no_such_msgs/msg/Thing", "no_such_msgs cannot be imported"),
        ("scenario:=no_such_scenario", "no_such_scenario"),
        ("run_dir:=/dev/null/run", "/dev/null/run"),
    ):
        node = sensing(ros, parameter)
        wait_until(lambda node=node: node.exit_code is not None, f"{parameter} to be refused")
        assert node.exit_code == REFUSED
        assert text in capfd.readouterr().err, parameter


# -- the clock -------------------------------------------------------------------------------------


def test_a_simulated_clock_that_goes_back_pauses_and_resume_goes_on(ros: Ros) -> None:
    node = sensing(ros, "use_sim_time:=true")
    probe = Probe(ros).connect()
    ros.match(probe.clock)
    mission = node.mission

    def at(seconds: float) -> None:
        probe.tick(seconds)
        wait_until(
            lambda: node.get_clock().now().nanoseconds == round(1e9 * seconds), "the time to come"
        )

    at(100.0)
    probe.pose(0.0, t=100 * 10**9)
    wait_until(lambda: probe.waypoints, "the first waypoint")
    assert probe.waypoints[0].header.stamp.sec == 100
    at(20.0)
    probe.wait_value("state", "paused")
    assert "went back by 80.000 s" in mission.reason
    probe.pose(10.0, t=20 * 10**9)
    probe.reading(5.0, t=20 * 10**9)
    probe.wait_value("readings_accepted", "1")
    sent = len(probe.waypoints)
    assert probe.call("resume").success
    at(21.0)
    wait_until(lambda: len(probe.waypoints) > sent, "the next waypoint, or the same again")
    assert probe.waypoints[-1].header.stamp.sec in (20, 21)
