"""Whatever happens to a file: it is read, or refused with one clear error."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import load_roads
from gp_active_sensing.topology.inspection import survey
from gp_active_sensing.topology.loaders import map_text
from tests.unit.topology.loaders.extracts import RESIDENTIAL, osm
from tests.unit.topology.loaders.nets import net, write_net
from tests.unit.topology.loaders.test_graphml import STREET, text_of
from tests.unit.topology.loaders.test_table import HEAD, ROWS
from tests.unit.topology.road_maps import street, write

ROUNDS = 60


def table(folder: Path) -> Path:
    path = folder / "town_edges.csv"
    path.write_text("\n".join([HEAD, ROWS[0].replace(",bc,", ",,")]) + "\n", encoding="utf-8")
    return path


def graphml(folder: Path) -> Path:
    path = folder / "quarter.graphml"
    path.write_text(text_of([("5", "7", "0", STREET), ("7", "9", "0", {})]), encoding="utf-8")
    return path


def extract(folder: Path) -> Path:
    pytest.importorskip("osmium", reason="the extra [maps] is not installed")
    path = folder / "quarter.osm"
    path.write_text(osm([(1, [1, 2, 3], RESIDENTIAL), (2, [2, 12], RESIDENTIAL)]), encoding="utf-8")
    return path


def nav2(folder: Path) -> Path:
    road_map = load_roads(write(folder / "street.geojson", street()))
    path = folder / "graph.geojson"
    path.write_text(map_text(road_map, "nav2")[0], encoding="utf-8")
    return path


MAKERS: dict[str, Callable[[Path], Path]] = {
    "geojson": lambda folder: write(folder / "street.geojson", street()),
    "nav2": nav2,
    "graphml": graphml,
    "osm": extract,
    "net": lambda folder: write_net(folder, net()),
    "net.gz": lambda folder: write_net(folder, net(), "small.net.xml.gz"),
    "table": table,
}


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return a file with a few bytes changed, a piece lost or doubled, or a number made absurd."""
    spoilt = bytearray(data)
    kind = rng.randrange(5)
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.randrange(1, 60))
    if kind == 0:
        for _ in range(rng.randrange(1, 4)):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
    elif kind == 1:
        del spoilt[start:end]
    elif kind == 2:
        spoilt[start:start] = data[start:end]
    elif kind == 3:
        del spoilt[start:]
    else:
        digits = [k for k, byte in enumerate(data) if chr(byte).isdigit()]
        at = rng.choice(digits)
        spoilt[at : at + 1] = rng.choice([b"nan", b"-1e400", b"null", b"99999999999", b"{}", b'""'])
    return bytes(spoilt)


def test_damage_never_gives_a_traceback(tmp_path: Path) -> None:
    for kind in MAKERS:
        path = MAKERS[kind](tmp_path)
        data = path.read_bytes()
        assert survey(load_roads(path)).segments > 0
        refused: list[str] = []
        for k in range(ROUNDS):
            path.write_bytes(damaged(data, random.Random(k)))
            try:
                assert survey(load_roads(path)).segments > 0
            except MapError as error:
                refused.append(str(error))
        assert len(refused) > ROUNDS // 4
        assert all(str(path) in message for message in refused)
