"""The shipped town: facts, and ten thousand random steps; the converter that made it."""

from __future__ import annotations

import csv
import gzip
import importlib
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gp_active_sensing.topology import MapConfig, Roads, build_topology, load_roads
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


def test_ten_thousand_steps(town: Roads) -> None:
    """Observe the whole town again and again; always legal, never stuck."""
    for seed in (0, 1):
        rng = np.random.default_rng([seed])
        legal = [set(town.neighbours(a).tolist()) for a in range(town.n)]
        observed = np.zeros(town.n, dtype=np.bool_)
        at: int | None = None
        steps = 0
        while steps < 5000:
            found = town.candidates(at, observed)
            if found.size == 0:
                assert observed.all()
                observed[:] = False
                continue
            goal = int(rng.choice(found))
            route = town.route(at, goal, observed)
            assert route.path[-1] == goal
            for b in route.path:
                assert at is None or b in legal[at]
                assert b == goal or observed[b]
                at = b
                steps += 1
            observed[goal] = True
        assert steps >= 5000


@pytest.fixture
def converter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(find_resource("maps", "town").parent))
    return importlib.import_module("sumo_to_geojson")


NET = """<?xml version="1.0" encoding="UTF-8"?>
<net>
  <edge id=":b_0" function="internal"><lane id="x" speed="5" length="3" shape="0,0 1,1"/></edge>
  <edge id="ab" from="a" to="b" type="local">
    <lane id="ab_0" speed="10.00" length="90.04" shape="0.00,-2.00 90.04,-2.00"/>
    <lane id="ab_1" speed="10.00" length="90.04" shape="0.00,0.00 90.04,0.00"/>
  </edge>
  <edge id="ba" from="b" to="a" type="local">
    <lane id="ba_0" speed="10.00" length="90.04" shape="90.04,4.00 0.00,4.00"/>
  </edge>
  <edge id="bc" from="b" to="c" type="local">
    <lane id="bc_0" speed="10.00" length="50.00" shape="95.00,0.00 145.00,0.00"/>
  </edge>
  <connection from="ab" to="bc" fromLane="0" toLane="0"/>
  <connection from="ab" to="ba" fromLane="0" toLane="0"/>
  <connection from="ba" to="ab" fromLane="0" toLane="0"/>
  <connection from=":b_0" to="bc" fromLane="0" toLane="0"/>
</net>
"""

EDGE_DATA = """<meandata>
  <interval begin="0.00" end="900.00" id="speeds">
    <edge id="ab" sampledSeconds="100.00" speed="4.00"/><edge id="ba" sampledSeconds="0.00"/>
  </interval>
  <interval begin="900.00" end="1800.00" id="speeds">
    <edge id="ab" sampledSeconds="300.00" speed="8.00"/>
    <edge id="ba" sampledSeconds="10.00" speed="9.00"/>
  </interval>
</meandata>
"""


def test_converter(converter: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "town.net.xml").write_text(NET, encoding="utf-8")
    (tmp_path / "town.edgedata.xml").write_text(EDGE_DATA, encoding="utf-8")
    trips = '<!-- generated on a day -->\n<trips><trip id="0" from="ab" to="bc"/></trips>\n'
    (tmp_path / "town.trips.xml").write_text(trips, encoding="utf-8")
    converter.convert(tmp_path, tmp_path / "out")
    packed = (tmp_path / "out" / "town.trips.xml.gz").read_bytes()
    assert gzip.decompress(packed).decode() == trips.partition("\n")[2], "no date, or it changes"
    assert load_roads(tmp_path / "out" / "town.net.xml.gz").segments[0].id == "ab"
    first, second, third = load_roads(tmp_path / "out" / "town.geojson").segments
    assert first.line == ((0.0, -1.0), (90.0, -1.0))
    assert (first.length, first.lanes, first.speed_limit) == (90.0, 2.0, 10.0)
    assert first.successors == ("ba", "bc")  # SUMO allows a U-turn that our rule would not
    assert second.successors is None
    assert third.successors is None  # nothing leaves c, which our rule finds too
    assert (tmp_path / "out" / "town_speeds.csv").read_text(encoding="utf-8") == (
        "id,v_0_900_mps,v_900_1800_mps,v_all_mps\nab,4.00,8.00,7.00\nba,,9.00,9.00\nbc,,,\n"
    )
