"""Maps that were made to use up time or memory, or that no run could write down."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import load_roads
from gp_active_sensing.topology.loaders import limits, xml_stream
from gp_active_sensing.topology.loaders.xml_stream import elements
from tests.page_names import REPOSITORY
from tests.unit.topology.road_maps import HEADER, segment, write

LINE = [(0, 0), (100, 0)]


def refused(path: Path, said: str) -> None:
    with pytest.raises(MapError, match=said) as caught:
        load_roads(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize("end", ["geojson", "csv", "graphml", "osm", "net.xml", "net.xml.gz"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, end: str) -> None:
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


@pytest.mark.parametrize("key", ["id", "from", "to", "name", "class"])
def test_half_a_character(tmp_path: Path, key: str) -> None:
    feature = segment("ab", "a", "b", LINE)
    feature["properties"][key] = "a\ud800"
    refused(write(tmp_path / "a.geojson", [feature]), "half a character")


@pytest.mark.parametrize("key", ["name", "frame"])
def test_half_a_character_in_the_head(tmp_path: Path, key: str) -> None:
    path = write(tmp_path / "a.geojson", [segment("ab", "a", "b", LINE)], {**HEADER, key: "\udfff"})
    refused(path, "half a character")


def test_half_a_character_in_the_name_of_a_number(tmp_path: Path) -> None:
    path = write(tmp_path / "a.geojson", [segment("ab", "a", "b", LINE, **{"\ud800": 1.0})])
    road_map = load_roads(path)
    assert not road_map.segments[0].extra
    assert any("half a character" in note for note in road_map.notes)


def star(count: int) -> list[dict[str, Any]]:
    """Return so many streets, both ways, from one junction."""
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
            stream.truncate(limits.MOST_TEXT + 1)
        refused(tmp_path / f"a.{end}", "is too large: expected at most 256 MiB")


@pytest.mark.parametrize("what", ["<net a='{}'/>", "<net>{}</net>", "<net><!--{}--></net>"])
@pytest.mark.parametrize("end", ["", ".gz"])
def test_a_tag_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, end: str
) -> None:
    monkeypatch.setattr(xml_stream, "MOST_TOKEN", 1_000_000)
    for size, fits in ((900_000, True), (1_100_000, False)):
        data = what.format("x" * size).encode()
        path = tmp_path / f"a{size}.net.xml{end}"
        path.write_bytes(gzip.compress(data) if end else data)
        if fits:
            assert list(elements(path, ["edge"], root="net")) == []
        else:
            with pytest.raises(MapError, match="holds a tag or a text of more than"):
                list(elements(path, ["edge"], root="net"))


def test_what_gzip_expands_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_stream, "MOST_FLOOR", 1 << 16)
    path = tmp_path / "bomb.net.xml.gz"
    path.write_bytes(gzip.compress(b"<net>" + b"<a          />" * 90_000 + b"</net>"))
    assert path.stat().st_size < 12_000
    with pytest.raises(MapError, match=r"expands to more than [01] MiB"):
        list(elements(path, ["edge"], root="net"))


@pytest.mark.slow
@pytest.mark.parametrize("tag", [b"<a/>", b"<a></a>"])
def test_a_file_of_nothing_but_tags(tmp_path: Path, tag: bytes) -> None:
    path = tmp_path / "bomb.net.xml.gz"
    path.write_bytes(gzip.compress(b"<net>" + tag * 300_000 + b"</net>"))
    with pytest.raises(MapError, match=r"tags in \d+ bytes: no map has more than one in 8"):
        list(elements(path, ["edge"], root="net"))


@pytest.mark.parametrize("tag", [b'<nd ref="1"/>', b'<nd ref="1"></nd>'])
def test_many_short_tags_that_are_sensible(tmp_path: Path, tag: bytes) -> None:
    path = tmp_path / "a.osm"
    count = limits.MOST_TAGS // tag.count(b"<") + 100
    path.write_bytes(b"<osm>" + tag * count + b"</osm>")
    assert sum(1 for _ in elements(path, ["nd"], root="osm")) == count


def test_the_page_says_the_limits() -> None:
    page = (REPOSITORY / "docs" / "maps.md").read_text(encoding="utf-8")
    said = page[page.index("## Limits") : page.index("## When a map is refused")]
    numbers = re.findall(r"\| ([^|]+) \|\n", said)[2:]
    assert numbers == [
        f"{limits.MOST_TEXT >> 20} MiB",
        f"{limits.MOST_FLOOR >> 20} MiB and {limits.MOST_RATIO} times its own size, and 2 GiB",
        f"{limits.MOST_TOKEN >> 20} MiB",
        f"{limits.MOST_TAGS:,}, or one in {limits.BYTES_PER_TAG} bytes",
        "1e9",
        f"{limits.MOST_TURNS:,}",
    ]
    assert limits.MOST_NUMBER == 1e9
    assert xml_stream.MOST_BYTES >> 30 == 2
