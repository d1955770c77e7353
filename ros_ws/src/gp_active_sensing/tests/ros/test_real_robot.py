"""A node sends a boat with GPS around the land between the arms of a hook, and home.

The boat accelerates, overshoots and has noise; the figures are those of its own log.
"""

from __future__ import annotations

import math

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

import shapely
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters

from tests.robots import Localisation, Robot
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import Probe, sensing

pytestmark = pytest.mark.ros

HOOK = [(0, 0), (200, 0), (200, 150), (160, 150), (160, 40), (40, 40), (40, 150), (0, 150)]
PARAMETERS = (
    "use_sim_time:=true",
    "map.kind:=grid",
    f"map.outline:='{[list(map(float, point)) for point in HOOK]}'",
    "map.spacing:=20.0",
    "belief.length_scales:=[40.0]",
    "belief.signal_std:=[1.0]",
    "belief.noise_std:=[0.1]",
    "policy.name:=ie",
    "probe.end:=c0r7",
    "budget.metres:=5000.0",
    "mission.wait_for_reading:=false",
    "plan_ahead:=false",
    "pose.max_ahead:=1000.0",
)


def test_a_lowered_budget_brings_a_boat_home_round_the_land(ros: Ros) -> None:
    node = sensing(ros, given=PARAMETERS)
    probe = Probe(ros).connect()
    wait_active(node)
    boat, gps, t = Robot(180.0, 130.0), Localisation(white=0.15, slow=0.6), 1.0
    water = shapely.Polygon(HOOK).buffer(2.0)
    mission = node.mission

    def sail() -> None:
        nonlocal t
        t += 0.2
        if probe.waypoints:
            goal = probe.waypoints[-1].pose.position
            boat.goal = goal.x, goal.y
        boat.step(0.2)
        pose = gps.pose(round(1e9 * t), boat.x, boat.y)
        probe.pose(pose.x, pose.y, t=pose.stamp_ns)
        probe.reading(20.0, t=pose.stamp_ns)
        probe.tick(t)
        wait_until(
            lambda: mission.now_ns >= 1e9 * (t - 0.5) and not mission.decisions.running,
            "the mission's clock",
        )

    while mission.decisions.stage < 6:
        sail()
    driven = mission.driven.metres
    client = ros.node("operator").create_client(SetParameters, "/active_sensing/set_parameters")
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=driven + 10.0)
    request = SetParameters.Request(parameters=[Parameter(name="budget.metres", value=value)])
    assert ros.call(client, request).results[0].successful
    heard = len(probe.waypoints)
    while mission.state != "ended":
        sail()
    assert len(probe.waypoints) - heard >= 2, "a corner, and the end place"
    assert shapely.covers(water, shapely.LineString(boat.way))
    assert math.dist(boat.way[-1], (0.0, 140.0)) < 15.0
    assert mission.driven.metres == pytest.approx(boat.metres, rel=0.03, abs=3.0)
