from __future__ import annotations

from typing import Any

import pytest
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.parameter import Parameter

from tests.cases import case
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import sensing, started


def change(node: Any, **values: Any) -> str:
    """Set parameters (with __ for a dot) in one go; return why not, "" when they are set."""
    given = [Parameter(name.replace("__", "."), value=value) for name, value in values.items()]
    return str(node.set_parameters_atomically(given).reason)


def test_the_budget_can_be_lowered_and_raised(ros: Ros) -> None:
    node, probe = started(ros, "budget.readings:=4")
    probe.reading(5.0)
    probe.wait_value("readings_left", "3")
    assert change(node, budget__readings=2) == ""
    probe.wait_value("readings_left", "1")
    assert change(node, budget__readings=3, budget__metres=500.0) == ""
    probe.wait_value("readings_left", "2")
    probe.wait_value("metres_left", "500")
    assert "must be 1 or more" in change(node, budget__readings=0)
    assert change(node, budget__readings=1) == ""
    probe.wait_value("state", "ended")
    assert probe.values["reason"] == "the budget of readings is spent"
    assert not node.callback_errors


def test_a_number_of_the_other_type_is_taken_where_it_is_exact(ros: Ros) -> None:
    """As ``ros2 param set`` does: 5000 is whole, 5000.0 is not."""
    node, _ = started(ros)
    tool = ros.node("parameter_tool")
    setting = tool.create_client(SetParameters, "/active_sensing/set_parameters")
    getting = tool.create_client(GetParameters, "/active_sensing/get_parameters")

    def put(name: str, given: Any) -> Any:
        message = Parameter(name, value=given).to_parameter_msg()
        return ros.call(setting, SetParameters.Request(parameters=[message])).results[0]

    for name, given, expected in (
        ("budget.metres", 5000, 5000.0),  # a double that is not set
        ("mission.drive_timeout", 7, 7.0),  # one with a range
        ("limit.seconds", 0, 0.0),
        ("budget.readings", 5.0, 5),  # and the other way round
        ("mission.retries", 3.0, 3),
    ):
        with case(name, given):
            assert put(name, given).successful
            (value,) = ros.call(getting, GetParameters.Request(names=[name])).values
            message = Parameter(name, value=expected).to_parameter_msg()
            assert value == Parameter.from_parameter_msg(message).get_parameter_value()
    for name, given in (
        ("budget.readings", 5.5),
        ("budget.readings", float("inf")),
        ("budget.readings", float("nan")),
        ("budget.metres", 2**53 + 1),
        ("budget.metres", "far"),
        ("budget.metres", True),
        ("mission.exit_at_end", 1),
        ("mission.drive_timeout", -7),
    ):
        with case(name, given):
            before = node.get_parameter_or(name).value
            refused = put(name, given)
            assert not refused.successful
            assert refused.reason
            assert node.get_parameter_or(name).value == before


def test_lists_of_numbers_of_the_other_type(ros: Ros) -> None:
    node = sensing(ros, "autostart:=false")
    assert change(node, map__origin=[1, 2]) == ""
    assert list(node.get_parameter("map.origin").value) == [1.0, 2.0]
    assert change(node, belief__signal_std=[3]) == ""
    assert list(node.get_parameter("belief.signal_std").value) == [3.0]
    assert change(node, map__origin=[1, 2**53 + 1]) != ""
    assert change(node, map__features=[1, 2]) != ""


@pytest.mark.long
def test_waypoints_come_as_a_stream_when_that_is_wanted(ros: Ros) -> None:
    node, probe = started(ros, "waypoint.rate:=20.0", "waypoint.altitude:=30.0")
    wait_until(lambda: len(probe.waypoints) > 10, "a stream of waypoints")
    assert {w.pose.position.z for w in probe.waypoints} == {30.0}
    assert {w.pose.position.x for w in probe.waypoints} == {probe.waypoints[0].pose.position.x}
    stamps = [w.header.stamp.sec + 1e-9 * w.header.stamp.nanosec for w in probe.waypoints]
    assert len(set(stamps)) > 5, "each has the time at which it was sent"
    assert probe.call("pause").success
    sent = len(probe.waypoints)
    wait_until(lambda: len(probe.waypoints) > sent + 5, "what hovers to go on hovering")
    assert change(node, waypoint__rate=0.0) == ""
    probe.call("save")  # whatever was under way has come
    sent = len(probe.waypoints)
    probe.wait_value("state", "paused")
    assert len(probe.waypoints) <= sent + 2


def test_a_controller_may_say_that_a_place_cannot_be_reached(ros: Ros) -> None:
    node, probe = started(ros)
    probe.reading(5.0)
    wait_until(lambda: len(probe.waypoints) == 2, "the second waypoint")
    answer = probe.call("unreachable")
    assert answer.success, answer.message
    wait_until(lambda: len(probe.waypoints) == 3, "another waypoint")
    assert probe.waypoints[2].pose.position.x != probe.waypoints[1].pose.position.x
    probe.wait_value("blocked", "1")

    def shown() -> bool:
        return any(m.ns == "blocked" and m.points for m in probe.heard["map"][-1].markers)

    wait_until(shown, "the place on the map")
    assert probe.call("pause").success
    assert "no place is being driven to" in probe.call("unreachable").message
    assert not node.callback_errors


def test_a_mission_shows_where_its_probe_is(ros: Ros) -> None:
    from visualization_msgs.msg import MarkerArray

    heard = ros.hear(MarkerArray, "active_sensing/probes")
    _, probe = started(ros)
    probe.pose(7.0)
    wait_until(
        lambda: heard and heard[-1].markers and heard[-1].markers[0].pose.position.x == 7.0,
        "the probe at its newest pose",
    )
