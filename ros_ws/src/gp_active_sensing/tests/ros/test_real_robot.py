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

from gp_active_sensing.ros.active_sensing_node import ActiveSensingNode
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
    "pose.max_ahead:=1000.0",
    "pose.reliable:=true",
    "reading.reliable:=true",
)


class Sailing:
    """A boat that a node sends around, in simulated time.

    Args:
        ros: where its topics are.
        node: of the mission.
        boat: where it begins.
        dt: between two poses [s].
    """

    def __init__(self, ros: Ros, node: ActiveSensingNode, boat: Robot, dt: float = 0.2) -> None:
        self.boat, self.dt, self.t = boat, dt, 1.0
        self.gps = Localisation(white=0.15, slow=0.6)
        self.anchored = self.silent = False
        self.sent = 0
        self.probe = Probe(ros).connect()
        wait_active(node)
        self.mission = node.mission

    def step(self) -> None:
        self.t += self.dt
        if self.probe.waypoints and not self.anchored:
            goal = self.probe.waypoints[-1].pose.position
            self.boat.goal = goal.x, goal.y
        self.boat.step(self.dt)
        pose = self.gps.pose(round(1e9 * self.t), self.boat.x, self.boat.y)
        if not self.silent:
            self.sent += 1
            self.probe.pose(pose.x, pose.y, t=pose.stamp_ns)
            self.probe.reading(20.0, t=pose.stamp_ns)
        self.probe.tick(self.t)
        mission = self.mission
        wait_until(
            lambda: (
                mission.now_ns >= 1e9 * (self.t - 0.5)
                and mission.inbox.received["poses"] >= self.sent
                and not mission.decisions.running
            ),
            "the pose, and the mission's clock",
        )

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / self.dt)):
            self.step()


def test_a_lowered_budget_brings_a_boat_home_round_the_land(ros: Ros) -> None:
    node = sensing(ros, given=PARAMETERS)
    sailing = Sailing(ros, node, boat := Robot(180.0, 130.0))
    mission, probe = sailing.mission, sailing.probe
    water = shapely.Polygon(HOOK).buffer(2.0)
    while mission.decisions.stage < 6:
        sailing.step()
    driven = mission.driven.metres
    client = ros.node("operator").create_client(SetParameters, "/active_sensing/set_parameters")
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=driven + 10.0)
    request = SetParameters.Request(parameters=[Parameter(name="budget.metres", value=value)])
    assert ros.call(client, request).results[0].successful
    heard = len(probe.waypoints)
    while mission.state != "ended":
        sailing.step()
    assert len(probe.waypoints) - heard >= 2, "a corner, and the end place"
    assert shapely.covers(water, shapely.LineString(boat.way))
    assert math.dist(boat.way[-1], (0.0, 140.0)) < 15.0
    assert mission.driven.metres == pytest.approx(boat.metres, rel=0.03, abs=3.0)


def test_an_anchor_a_multipath_and_a_dropout_are_not_driven(ros: Ros) -> None:
    """Ten minutes at anchor, a position 40 m off for two seconds, twenty seconds without radio."""
    node = sensing(ros, given=(*PARAMETERS, "mission.drive_timeout:=0.0"))
    sailing = Sailing(ros, node, boat := Robot(180.0, 130.0), dt=0.5)
    mission = sailing.mission
    sailing.anchored = True
    sailing.run(600.0)
    assert mission.driven.metres <= 1.0
    sailing.anchored = False
    while mission.decisions.stage < 3:
        sailing.step()
    sailing.run(10.0)
    sailing.gps.offset = (0.0, 40.0)
    sailing.run(2.0)
    sailing.gps.offset = (0.0, 0.0)
    sailing.run(10.0)
    assert mission.rejected["pose_jumped"] >= 3
    sailing.silent = True
    sailing.run(20.0)
    sailing.silent = False
    while mission.decisions.stage < 7:
        sailing.step()
    # A turn during the silence is charged by its chord.
    assert mission.driven.metres == pytest.approx(boat.metres, rel=0.06)
    assert mission.loop.belief.observed.sum() >= 6
