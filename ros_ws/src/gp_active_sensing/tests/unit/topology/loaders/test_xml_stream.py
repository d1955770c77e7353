"""XML that is damaged, cut short, too large or meant to do harm."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import load_roads
from gp_active_sensing.topology.loaders import xml_stream
from gp_active_sensing.topology.loaders.xml_stream import elements, tag_of
from tests.unit.topology.loaders.nets import net, write_net

LAUGHS = "".join(f'<!ENTITY lol{k} "{f"&lol{k - 1};" * 10 if k else "lol"}">' for k in range(10))
BILLION = f'<?xml version="1.0"?><!DOCTYPE net [{LAUGHS}]><net><location x="&lol9;"/></net>'
FILE = '<!DOCTYPE net [<!ENTITY x SYSTEM "file:///etc/hostname">]><net><edge id="&x;"/></net>'


def whole(path: Path, *wanted: str) -> list[str]:
    return [tag_of(element) for element in elements(path, wanted, root="net")]


@pytest.mark.parametrize("name", ["a.net.xml", "a.net.xml.gz"])
def test_gives_what_is_wanted_and_forgets_the_rest(tmp_path: Path, name: str) -> None:
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


@pytest.mark.parametrize("text", [BILLION, FILE, '<!DOCTYPE net SYSTEM "http://x/y"><net/>'])
@pytest.mark.parametrize("suffix", [".net.xml", ".graphml"])
def test_nothing_is_expanded_or_loaded(tmp_path: Path, text: str, suffix: str) -> None:
    path = tmp_path / f"evil{suffix}"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MapError, match=r"declares a document type or entities \(DTDForbidden\)"):
        load_roads(path)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_network_that_is_cut_short(tmp_path: Path, keep: float) -> None:
    text = net()
    path = write_net(tmp_path, text[: int(keep * len(text))])
    with pytest.raises(MapError, match=r"small\.net\.xml: is not valid XML, perhaps truncated"):
        load_roads(path)


@pytest.mark.parametrize("keep", [0.02, 0.5, 0.99])
def test_a_gzip_file_that_is_cut_short(tmp_path: Path, keep: float) -> None:
    path = write_net(tmp_path, net(), "small.net.xml.gz")
    data = path.read_bytes()
    path.write_bytes(data[: max(8, int(keep * len(data)))])
    with pytest.raises(MapError, match="the gzip file is cut short; copy it again"):
        load_roads(path)


def test_gzip_files_that_are_damaged(tmp_path: Path) -> None:
    path = write_net(tmp_path, net(), "small.net.xml.gz")
    data = bytearray(path.read_bytes())
    for start in (0, 12, len(data) // 2, len(data) - 8):
        spoilt = data.copy()
        for k in range(start, start + 6):
            spoilt[k] ^= 0x5A
        path.write_bytes(spoilt)
        with pytest.raises(MapError, match=r"damaged|cut short|not valid XML"):
            load_roads(path)
    path.write_text(net(), encoding="utf-8")
    with pytest.raises(MapError, match=r"the gzip file is damaged .*Not a gzipped file"):
        load_roads(path)


def test_a_gzip_file_that_expands_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xml_stream, "MOST_BYTES", 1 << 20)
    path = tmp_path / "bomb.net.xml.gz"
    path.write_bytes(gzip.compress(b"<net>" + b" " * (4 << 20) + b"</net>"))
    with pytest.raises(MapError, match=r"bomb\.net\.xml\.gz: expands to more than"):
        load_roads(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not valid XML"),
        (b"<routes/>", "expected a file that begins with <net>, got <routes>"),
        (b'<?xml version="1.0" encoding="klingon"?><net/>', "klingon|cannot be read|not valid XML"),
        (b"\xff\xfe\x00", "not valid XML"),
        (b"<net>\x00</net>", "not valid XML"),
    ],
)
def test_files_that_are_no_networks(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "broken.net.xml"
    path.write_bytes(data)
    with pytest.raises(MapError, match=message):
        load_roads(path)


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MapError, match="cannot be read"):
        load_roads(tmp_path / "missing.net.xml.gz")
