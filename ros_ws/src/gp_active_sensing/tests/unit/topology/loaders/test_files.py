"""Map files that are damaged, cut short, too large, or made to use up time or memory."""

from __future__ import annotations

import gzip
import json
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import load_roads
from gp_active_sensing.topology.loaders import MOST_TEXT
from gp_active_sensing.util import xml_files
from gp_active_sensing.util.xml_files import elements, tag_of
from tests.unit.topology.loaders.extracts import RESIDENTIAL, osm
from tests.unit.topology.loaders.nets import net, write_net
from tests.unit.topology.loaders.test_graphml import STREET, text_of
from tests.unit.topology.loaders.test_nav2 import room
from tests.unit.topology.loaders.test_table import HEAD, ROWS
from tests.unit.topology.road_maps import segment, street, write

LAUGHS = "".join(f'<!ENTITY lol{k} "{f"&lol{k - 1};" * 10 if k else "lol"}">' for k in range(10))
BILLION = f'<?xml version="1.0"?><!DOCTYPE net [{LAUGHS}]><net><location x="&lol9;"/></net>'
FILE = '<!DOCTYPE net [<!ENTITY x SYSTEM "file:///etc/hostname">]><net><edge id="&x;"/></net>'


def whole(path: Path, *wanted: str) -> list[str]:
    return [tag_of(element) for element in elements(path, wanted, root="net")]


def test_gives_what_is_wanted_and_forgets_the_rest(tmp_path: Path) -> None:
    for name in ("a.net.xml", "a.net.xml.gz"):
        path = write_net(tmp_path, net(), name)
        assert whole(path, "edge", "lane") == ["edge"] * 5  # lanes are parts of edges
        assert whole(path, "location", "connection") == ["location", *["connection"] * 5]


def test_elements_are_forgotten_once_they_were_given(tmp_path: Path) -> None:
    edge = '<edge id="e{}" from="a" to="b"><lane speed="9" length="9" shape="{}"/></edge>'
    shape = " ".join(f"{x},{x}" for x in range(200))
    path = write_net(tmp_path, net(edges="".join(edge.format(i, shape) for i in range(3000))))
    tracemalloc.start()
    count = sum(1 for _ in elements(path, ["edge"], root="net"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 3000
    assert peak < 0.3 * path.stat().st_size


def test_nothing_is_expanded_or_loaded(tmp_path: Path) -> None:
    for text in (BILLION, FILE, '<!DOCTYPE net SYSTEM "http://x/y"><net/>'):
        for suffix in (".net.xml", ".graphml"):
            path = tmp_path / f"evil{suffix}"
            path.write_text(text, encoding="utf-8")
            with pytest.raises(
                MapError, match=r"declares a document type or entities \(DTDForbidden\)"
            ):
                load_roads(path)


def test_networks_that_are_cut_short_or_none(tmp_path: Path) -> None:
    text = net().encode()
    packed = gzip.compress(text)
    for name, data, message in (
        *(
            ("net.xml", text[: len(text) * k // 10], "not valid XML, perhaps trunc")
            for k in (1, 5, 9)
        ),
        *(("net.xml.gz", packed[:k], "is cut short; copy it") for k in (8, len(packed) - 9)),
        ("net.xml", b"", "not valid XML"),
        ("net.xml", b"<routes/>", "expected a file that begins with <net>, got <routes>"),
        (
            "net.xml",
            b'<?xml version="1.0" encoding="klingon"?><net/>',
            "klingon|cannot be read|not ",
        ),
    ):
        path = tmp_path / f"small.{name}"
        path.write_bytes(data)
        with pytest.raises(MapError, match=message) as caught:
            load_roads(path)
        assert str(path) in str(caught.value)


def test_what_gzip_expands_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.net.xml.gz"
    for limit, size, filling in (
        ("MOST_BYTES", 1 << 20, b" " * (4 << 20)),
        ("MOST_FLOOR", 1 << 16, b"<a          />" * 90_000),
    ):
        path.write_bytes(gzip.compress(b"<net>" + filling + b"</net>"))
        with monkeypatch.context() as patch:
            patch.setattr(xml_files, limit, size)
            with pytest.raises(MapError, match="expands to more than"):
                list(elements(path, ["edge"], root="net"))


LINE = [(0, 0), (100, 0)]


def refused(path: Path, said: str) -> None:
    with pytest.raises(MapError, match=said) as caught:
        load_roads(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 3000


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    for end in ("geojson", "csv", "graphml", "osm", "net.xml", "net.xml.gz"):
        pipe = tmp_path / f"pipe.{end}"
        os.mkfifo(pipe)
        refused(pipe, "expected a file, got a pipe")
        device = tmp_path / f"device.{end}"
        device.symlink_to("/dev/zero")
        refused(device, "expected a file, got a pipe, a device")
        (tmp_path / f"folder.{end}").mkdir()
        refused(tmp_path / f"folder.{end}", "Is a directory")


def test_lengths_whose_sum_is_no_number(tmp_path: Path) -> None:
    features = [
        segment("ab", "a", "b", LINE, length_m=1e308),
        segment("ba", "b", "a", LINE[::-1], length_m=1e308),
    ]
    refused(write(tmp_path / "a.geojson", features), r"length_m: expected a number above 0, at mos")
    far = [segment("ab", "a", "b", [(0, 0), (1e300, -1e308)])]
    refused(write(tmp_path / "b.geojson", far), "a coordinate is beyond 1e")


def test_half_a_character(tmp_path: Path) -> None:
    for key in ("id", "from", "to", "name", "class"):
        feature = segment("ab", "a", "b", LINE)
        feature["properties"][key] = "a\ud800"
        refused(write(tmp_path / "a.geojson", [feature]), "half a character")


def star(count: int) -> list[dict[str, Any]]:
    return [
        segment(f"s{i}", "hub", f"end{i}", [(0, 0), (100, i + 1)], oneway=False)
        for i in range(count)
    ]


def test_segments_at_one_junction(tmp_path: Path) -> None:
    assert len(load_roads(write(tmp_path / "a.geojson", star(100))).segments) == 200
    refused(write(tmp_path / "b.geojson", star(101)), "'hub': 101 segments end and 101 begin there")
    parallel = [segment(f"s{i}", "a", "b", [(0, 0), (9, i)], oneway=False) for i in range(2000)]
    refused(write(tmp_path / "c.geojson", parallel), "'b': 2000 segments end and 2000 begin there")


def test_a_text_that_is_too_large(tmp_path: Path) -> None:
    for end in ("geojson", "csv"):
        with (tmp_path / f"a.{end}").open("wb") as stream:
            stream.truncate(MOST_TEXT + 1)
        refused(tmp_path / f"a.{end}", "is too large: expected at most 256 MiB")


def test_a_tag_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for what in ("<net a='{}'/>", "<net>{}</net>", "<net><!--{}--></net>"):
        for end in ("", ".gz"):
            monkeypatch.setattr(xml_files, "MOST_TOKEN", 1_000_000)
            for size, fits in ((900_000, True), (1_100_000, False)):
                data = what.format("x" * size).encode()
                path = tmp_path / f"a{size}.net.xml{end}"
                path.write_bytes(gzip.compress(data) if end else data)
                if fits:
                    assert list(elements(path, ["edge"], root="net")) == []
                else:
                    with pytest.raises(MapError, match="holds a tag or a text of more than"):
                        list(elements(path, ["edge"], root="net"))


@pytest.mark.slow
def test_a_file_of_nothing_but_tags(tmp_path: Path) -> None:
    for tag in (b"<a/>", b"<a></a>"):
        path = tmp_path / "bomb.net.xml.gz"
        path.write_bytes(gzip.compress(b"<net>" + tag * 300_000 + b"</net>"))
        with pytest.raises(MapError, match=r"tags in \d+ bytes: no map has more than one in 8"):
            list(elements(path, ["edge"], root="net"))


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
    path = folder / "graph.geojson"
    data = {"type": "FeatureCollection", "features": room()}
    path.write_text(json.dumps(data), encoding="utf-8")
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
        assert len(load_roads(path).segments) > 0
        refused: list[str] = []
        for k in range(ROUNDS):
            path.write_bytes(damaged(data, random.Random(k)))
            try:
                assert len(load_roads(path).segments) > 0
            except MapError as error:
                refused.append(str(error))
        assert len(refused) > ROUNDS // 4
        assert all(str(path) in message for message in refused)
