"""The shipped town: facts, and ten thousand random steps; the converter that made it."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from gp_active_sensing.topology import MapConfig, Roads, build_topology
from gp_active_sensing.util.resources import find_resource


@pytest.fixture(scope="module")
def town() -> Roads:
    topology = build_topology(MapConfig(kind="roads", file="town"))
    assert isinstance(topology, Roads)
    return topology


def test_speeds_belong_to_the_segments(town: Roads) -> None:
    with find_resource("maps", "town_speeds").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == list(town.names)
    speeds = np.array([float(row["v_all_mps"]) for row in rows])
    limits = np.array([s.speed_limit or math.nan for s in town.segments])
    assert np.isfinite(speeds).all()
    assert (speeds > 0).all()
    assert (speeds < 1.3 * limits).all()
    assert 3.6 * speeds.mean() == pytest.approx(31.5, abs=0.1)
    assert 3.6 * speeds.std() == pytest.approx(12.0, abs=0.1)
    # a field with a length-scale: neighbours resemble one another, far segments do not
    z = (speeds - speeds.mean()) / speeds.std()
    apart = np.linalg.norm(town.positions[:, None] - town.positions[None], axis=2)
    product = np.outer(z, z)
    near = product[(apart > 0) & (apart < 150)].mean()
    assert near > 0.4
    assert abs(product[(apart > 600) & (apart < 1000)].mean()) < 0.15
