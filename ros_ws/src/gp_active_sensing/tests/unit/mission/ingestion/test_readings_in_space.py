"""On a map with heights a reading belongs at the height of its sensor, as far as that is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.topology import Topology, make_grid
from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig

STEP, LAYER = 10.0, 2.0


def column() -> Topology:
    """Five places from west to east in each of four layers, 2 m apart."""
    return make_grid(5, 1, STEP, heights=[0.0, -LAYER, -2 * LAYER, -3 * LAYER])


def read_at(
    rig: Rig, t: float, x: float, z: float, variance: float = 0.0, z_variance: float = 0.0,
    *, value: float = 12.0, heading: float = 0.0,
) -> None:  # fmt: skip
    pose = Pose(round(t * SECOND), "map", x, 0.0, heading, variance, z=z, z_variance=z_variance)
    rig.mission.inbox.put(pose, rig.seconds)
    rig.reading(t, value, 0.01)
    rig.step(t)


def lines(rig: Rig) -> list[dict[str, Any]]:
    return [event for event in rig.events if event["event"] == "reading"]


@for_each("window", [None, 0.0, 5.0])
def test_the_variance_of_a_reading_is_its_own_and_what_the_field_varies_by(
    window: float | None,
) -> None:
    rig = Rig(column(), taking={"window": window})
    read_at(rig, 1.0, 20.0, -LAYER, variance=9.0, z_variance=0.5)
    rig.ingestion.stop_waiting()
    belief, place = rig.loop.belief, rig.topology.names.index("c2r0z1")
    precision, *_ = belief._data.places.collapse(
        np.array([place]), belief.noise_variance, None, belief._data._beside(np.array([place]))
    )
    expected = 0.01 + belief.varies_by(place, 9.0, 0.5)
    assert 1.0 / precision[:, 0] == pytest.approx(expected, rel=1e-5)
    [line] = lines(rig)
    assert (line["position_variance"], line["height_variance"]) == (9.0, 0.5)
    assert line["position"] == [20.0, 0.0, -LAYER]
    if window is None:
        assert line["stay"]["off"] == pytest.approx([3.0, math.sqrt(0.5)], rel=1e-5)


@for_each(
    ("mount", "heading", "name"),
    [
        ((0.0, 0.0), 0.0, "c2r0z1"),
        ((0.0, 0.0, -2.0), 0.0, "c2r0z2"),
        ((0.0, 0.0, 2.0), math.nan, "c2r0z0"),
        ((10.0, 0.0, -4.0), 0.0, "c3r0z3"),
        ((10.0, 0.0, -4.0), math.pi, "c1r0z3"),
    ],
)
def test_a_reading_counts_for_the_layer_of_its_sensor(
    mount: tuple[float, ...], heading: float, name: str
) -> None:
    rig = Rig(column(), taking={"mount": mount})
    read_at(rig, 1.0, 20.0, -LAYER, heading=heading)
    assert rig.observed == [name]
    here = rig.ingestion.here
    assert rig.topology.names[here.place] == "c2r0z1", "the probe itself"


def test_a_reading_far_above_the_map_is_off_it(caplog: pytest.LogCaptureFixture) -> None:
    """Of 10 m across and 2 m up, 9 m up are farther than a place is from the next."""
    rig = Rig(column(), taking={"mount": (0.0, 0.0, 9.0)})
    read_at(rig, 1.0, 20.0, 0.0)
    assert rig.ingestion.rejected == {"off_map": 1}
    assert "taken at (20.0, 0.0, 9.0), farther than 10 m from every place" in caplog.text
