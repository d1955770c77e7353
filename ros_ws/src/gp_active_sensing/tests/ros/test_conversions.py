"""Messages to numbers, and results to messages, as RViz and Foxglove draw them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from geometry_msgs.msg import Point, PoseStamped, PoseWithCovarianceStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import LaserScan, NavSatFix, Temperature
from std_msgs.msg import Float32, Float64MultiArray
from visualization_msgs.msg import Marker

from gp_active_sensing.belief import HyperParameters
from gp_active_sensing.errors import ConfigError, MissingDependencyError
from gp_active_sensing.messages.conversions import FieldPath, ValueReader, heading_of, pose_reader
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.mission.stream_config import ReadingConfig
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.to_messages import (
    MARKS,
    RosTypes,
    find_message_type,
    map_markers,
    probe_markers,
    type_name,
)
from gp_active_sensing.topology import MapConfig, RoadMap, Roads, Segment, build_topology
from tests.cases import case

TYPES = RosTypes()

# -- types and fields --------------------------------------------------------------------------


def test_message_type_by_name() -> None:
    for name in ("sensor_msgs/msg/Temperature", "sensor_msgs/Temperature"):
        assert find_message_type(name) is Temperature, name
    for name, error, text in [
        ("Temperature", ConfigError, "expected package/msg/Name"),
        ("sensor_msgs/msg/Temprature", ConfigError, "Did you mean 'Temperature'"),
        ("no_such_msgs/msg/Thing", MissingDependencyError, r"ros-\$ROS_DISTRO-no-such-msgs"),
        ("os/msg/../System", ConfigError, "expected package/msg/Name"),
    ]:
        with case(name, error, text):
            with pytest.raises(error, match=text):
                find_message_type(name)


def test_fields() -> None:
    odometry, array = Odometry(), Float64MultiArray(data=[1.0, 2.0, 3.0, 4.0])
    odometry.twist.twist.linear.x, odometry.pose.covariance[7] = 12.5, 0.25
    points = Marker(points=[Point(x=1.0), Point(x=2.0)])
    for message, path, value in (
        (odometry, "twist.twist.linear.x", 12.5),
        (odometry, "pose.covariance[7]", 0.25),
        (array, "data[3]", 4.0),
        (array, "data[-1]", 4.0),
        (points, "points[1].x", 2.0),
        (LaserScan(ranges=[1.0]), "ranges[5]", math.nan),
    ):
        found = FieldPath.parse(path, type_name(type(message)), TYPES).read(message)
        assert found == pytest.approx(value, nan_ok=True), path


def test_wrong_field() -> None:
    for kind, path, text in [
        (Temperature, "temprature", "no field 'temprature'. Did you mean 'temperature'"),
        (Temperature, "header", "expected a number.*Name a field of it"),
        (Temperature, "header.frame_id", "expected a number, the field is a string"),
        (Temperature, "temperature[0]", "not an array; leave the"),
        (Temperature, "temperature.x", "is a double, it has no field 'x'"),
        (Float64MultiArray, "data", r"expected a number.*Add \[i\]"),
        (Odometry, "twist..x", "names separated by dots"),
        (Odometry, "", "names separated by dots"),
        (Odometry, "__class__.x", "names separated by dots"),
    ]:
        with case(kind, path, text):
            with pytest.raises(ConfigError, match=text):
                FieldPath.parse(path, type_name(kind), TYPES)


# -- readings ----------------------------------------------------------------------------------


def test_a_reading_has_the_stamp_of_its_header_and_a_variance_that_is_not_zero() -> None:
    reader = ValueReader(TYPES, ReadingConfig(variance_field="variance"))
    message = Temperature(temperature=100.0, variance=0.5)
    message.header.stamp.sec, message.header.stamp.nanosec = 3, 7
    value = reader.read(message)
    assert (value.stamp_ns, value.value, value.noise_variance) == (3_000_000_007, 100.0, 0.5)
    assert reader.read(Temperature(temperature=1.0)).noise_variance is None, "zero is not known"
    plain = ValueReader(TYPES, ReadingConfig(type="std_msgs/msg/Float32", field="data"))
    assert plain.read(Float32(data=2.0)).stamp_ns is None


# -- poses -------------------------------------------------------------------------------------


def test_pose_messages() -> None:
    for kind in [Odometry, PoseStamped, PoseWithCovarianceStamped]:
        with case(kind):
            message = kind()
            message.header.frame_id = "map"
            message.header.stamp.sec = 5
            inner = message.pose if kind is PoseStamped else message.pose.pose
            inner.position.x, inner.position.y, inner.orientation.w = 1.0, 2.0, 1.0
            package = "nav_msgs" if kind is Odometry else "geometry_msgs"
            pose = pose_reader(f"{package}/msg/{kind.__name__}")(message)
            assert (pose.stamp_ns, pose.frame, pose.x, pose.y, pose.heading) == (
                5 * 10**9,
                "map",
                1,
                2,
                0,
            )
    with pytest.raises(ConfigError, match=r"pose\.type: "):
        pose_reader("sensor_msgs/msg/Imu")


def test_fix_to_local_metres() -> None:
    read = pose_reader("sensor_msgs/msg/NavSatFix", datum=(48.0, 11.0), frame="map")
    message = NavSatFix(latitude=48.0 + 1e-3, longitude=11.0)
    message.header.frame_id = "gps"
    pose = read(message)
    assert pose.frame == "map"
    assert pose.x == pytest.approx(0.0, abs=1e-6)
    # a thousandth of the meridian's degree at 48°: 111.132954 - 0.559822 cos 2φ + 0.001175 cos 4φ
    degree = 111132.954 - 559.822 * math.cos(math.radians(96)) + 1.175 * math.cos(math.radians(192))
    assert pose.y == pytest.approx(1e-3 * degree, rel=1e-5)
    assert math.isnan(pose.heading)
    message.status.status = -1
    assert math.isnan(read(message).x), "there is no fix"


# -- results -----------------------------------------------------------------------------------


def roads() -> Roads:
    segments = (
        Segment("a", "A", "B", ((0.0, 0.0), (100.0, 0.0)), 100.0, speed_limit=10.0),
        Segment("b", "B", "C", ((100.0, 0.0), (100.0, 50.0), (150.0, 50.0)), 100.0),
    )
    return Roads(RoadMap("two", "map", segments), speed=10.0)


def test_waypoint_has_heading_frame_and_altitude() -> None:
    message = outputs.waypoint_message((1.0, 2.0, math.pi / 2), "map", 1_500_000_000, 30.0)
    assert message.pose.position.z == 30.0
    q = message.pose.orientation
    assert heading_of(q.x, q.y, q.z, q.w) == pytest.approx(math.pi / 2)
    assert (message.header.frame_id, message.header.stamp.sec) == ("map", 1)
    assert message.header.stamp.nanosec == 500_000_000


def test_plan_follows_the_geometry() -> None:
    path = outputs.plan_path(roads(), [0, 1], 0, 30.0)
    assert {pose.pose.position.z for pose in path.poses} == {30.0}
    points = [(p.pose.position.x, p.pose.position.y) for p in path.poses]
    assert points == [(0, 0), (100, 0), (100, 50), (150, 50)]
    q = path.poses[1].pose.orientation
    assert heading_of(q.x, q.y, q.z, q.w) == pytest.approx(math.pi / 2)


def test_weights_are_labelled() -> None:
    candidates = (HyperParameters((150.0,), 14.0, 2.0), HyperParameters((3.0, 4.0), 1.0, 0.5))
    message = outputs.weights_message([0.75, 0.25], candidates)
    labels = [d.label for d in message.layout.dim]
    assert labels[0] == "length_scale=150 signal_std=14 noise_std=2"
    assert labels[1].startswith("length_scale=3/4 ")
    assert list(message.data) == [0.75, 0.25]
    kernels = [HyperParameters((29.4,), 2.2, 0.4, "LIN×RQ+PER")]
    message = outputs.weights_message([1.0], kernels)
    assert message.layout.dim[0].label.split()[:2] == ["kernel=LIN×RQ+PER", "length_scale=29.4"]


# -- quality of service --------------------------------------------------------------------------


def test_sensor_profile_keeps_two_seconds() -> None:
    for rate, depth in [(0.1, 10), (10, 20), (50.4, 101), (1e5, 10_000)]:
        with case(rate, depth):
            profile = qos.sensor(rate)
            assert profile.depth == depth
            assert profile.reliability == qos.ReliabilityPolicy.BEST_EFFORT


GRID = build_topology(MapConfig("grid", columns=3, rows=2, spacing=10.0))


def test_each_kind_of_place_is_a_marker_of_its_own() -> None:
    places = {"visited": [0], "planned": [1], "next": [1]}
    markers = map_markers(roads(), places, 0).markers
    assert [m.ns for m in markers] == list(MARKS)
    assert [m.id for m in markers] == [0, 1, 2, 3, 4, 5]
    shown = {m.ns: m for m in markers if m.action == Marker.ADD}
    assert set(shown) == {"topology", "visited", "planned", "next"}
    assert {m.type for m in shown.values()} == {Marker.LINE_LIST}
    assert {ns: len(m.points) for ns, m in shown.items()} == {
        "topology": 6,
        "visited": 2,
        "planned": 4,
        "next": 4,
    }
    assert [(p.x, p.y) for p in shown["visited"].points] == [(0, 0), (100, 0)]
    assert shown["next"].scale.x > shown["planned"].scale.x > shown["topology"].scale.x
    assert shown["next"].points[0].z > shown["planned"].points[0].z


def test_the_places_of_a_grid_are_points_and_a_kind_without_places_is_deleted() -> None:
    markers = {m.ns: m for m in map_markers(GRID, {"visited": [0, 5]}, 0).markers}
    assert {m.type for m in markers.values()} == {Marker.POINTS}
    assert [len(markers[ns].points) for ns in ("topology", "visited", "blocked")] == [6, 2, 0]
    assert (markers["visited"].action, markers["blocked"].action) == (Marker.ADD, Marker.DELETE)


def test_a_probe_is_an_arrow_where_it_heads() -> None:
    pose = Pose(10**9, "map", 3.0, 4.0, math.pi / 2)
    (marker,) = probe_markers(GRID, [("", pose, True)]).markers
    assert marker.type == Marker.ARROW
    assert (marker.pose.position.x, marker.pose.position.y) == (3.0, 4.0)
    assert marker.pose.orientation.z == pytest.approx(math.sin(math.pi / 4))
    assert marker.lifetime.sec > 0, "a node that has died shows none"
    assert marker.header.frame_id == "map"
    (marker,) = probe_markers(GRID, [("", replace(pose, heading=math.nan), True)]).markers
    assert (marker.type, marker.pose.orientation.w) == (Marker.SPHERE, 1.0), "without a heading"


def test_several_probes_have_names_and_those_that_are_gone_are_grey() -> None:
    shown = [
        ("boat_1", Pose(0, "map", 0.0, 0.0, 0.0), True),
        ("boat_2", Pose(0, "map", 5.0, 0.0, 0.0), False),
    ]
    markers = probe_markers(GRID, shown).markers
    assert [(m.ns, m.id, m.text) for m in markers] == [
        ("probe", 0, ""),
        ("name", 0, "boat_1"),
        ("probe", 1, ""),
        ("name", 1, "boat_2"),
    ]
    assert markers[1].type == Marker.TEXT_VIEW_FACING
    assert markers[0].color.r > markers[0].color.g
    assert markers[2].color.g == markers[2].color.r
