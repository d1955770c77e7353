"""What the tags of OpenStreetMap say about driving."""

from __future__ import annotations

import pytest

from gp_active_sensing.topology.loaders.osm import drivable, lanes_of, limit_of, speed_of

STREET = {"highway": "residential"}


def test_drivable() -> None:
    for tags, expected in (
        (STREET, True),
        ({"highway": "motorway_link"}, True),
        ({"highway": "service"}, False),
        ({"highway": "footway"}, False),
        ({"building": "yes"}, False),
        ({**STREET, "area": "yes"}, False),
        ({**STREET, "access": "private"}, False),
        ({**STREET, "access": "no", "motor_vehicle": "yes"}, True),
        ({**STREET, "motor_vehicle": "no"}, False),
        ({**STREET, "vehicle": "no", "motorcar": "destination"}, True),
    ):
        assert drivable(tags) is expected


def test_speeds() -> None:
    for text, kmh in (
        ("50", 50.0),
        ("50 km/h", 50.0),
        ("7,5", 7.5),
        ("30 mph", 48.28032),
        ("10 knots", 18.52),
        ("walk", 7.0),
        ("none", None),
        ("RO:urban", None),
        ("50;30", None),
        ("0", None),
        ("", None),
    ):
        found = speed_of(text)
        assert found == (None if kmh is None else pytest.approx(kmh / 3.6))


def test_limits_of_a_direction() -> None:
    tags = {"maxspeed": "50", "maxspeed:backward": "none"}
    assert limit_of(tags, backward=False) == pytest.approx(50 / 3.6)
    assert limit_of(tags, backward=True) is None


def test_lanes() -> None:
    for tags, both, forward, backward in (
        ({"lanes": "4"}, True, 2.0, 2.0),
        ({"lanes": "4"}, False, 4.0, 4.0),
        ({"lanes": "1"}, True, 1.0, 1.0),
        ({"lanes": "3", "lanes:forward": "1", "lanes:backward": "2"}, True, 1.0, 2.0),
        ({"lanes": "many"}, True, None, None),
        ({"lanes": "-1"}, True, None, None),
        ({"lanes": "inf"}, True, None, None),
        ({}, True, None, None),
    ):
        assert lanes_of(tags, backward=False, both=both) == forward
        assert lanes_of(tags, backward=True, both=both) == backward
