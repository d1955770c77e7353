"""Tables of edges, with and without a table of nodes beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology import RoadMap, load_roads

HEAD = "id,from,to,length_m,lanes,speed_limit_kmh,oneway,successors,type,street,slope,surface,wkt"
ROWS = (
    'ab,a,b,101.5,2,50,1,bc,local,High Street,0.5,tar,"LINESTRING (0 0, 100 0)"',
    'bc,b,c,,,30,,ab2 bc2,,"Mill, Lane",,,"LINESTRING Z (100 0 5, 200 10 5, 200 60 5)"',
)


def load(tmp_path: Path, *lines: str, name: str = "town_edges.csv", crs: str = "") -> RoadMap:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return load_roads(path, crs=crs)


def test_reads_rows_and_columns(tmp_path: Path) -> None:
    rows = [ROWS[0], ROWS[1].replace("ab2 bc2", "")]
    first, second = load(tmp_path, HEAD, *rows).segments
    assert (first.id, first.start, first.end) == ("ab", "a", "b")
    assert (first.length, first.lanes, first.successors) == (101.5, 2.0, ("bc",))
    assert first.speed_limit == pytest.approx(50 / 3.6)
    assert (first.road_class, first.name, first.extra) == ("local", "High Street", {"slope": 0.5})
    assert second.line == ((100.0, 0.0), (200.0, 10.0), (200.0, 60.0))
    assert second.length == pytest.approx(150.499, abs=1e-3)
    assert (second.lanes, second.name, second.extra, second.successors) == (
        None,
        "Mill, Lane",
        {},
        (),
    )


def test_other_marks_between_cells(tmp_path: Path) -> None:
    for mark in (";", "\t"):
        lines = [
            line.replace(",", mark, 3)
            for line in ("id,from,to,wkt", '1,a,b,"LINESTRING (0 0, 9 0)"')
        ]
        assert load(tmp_path, *lines).segments[0].line == ((0.0, 0.0), (9.0, 0.0))


def test_two_way_edges_get_a_twin_and_guesses_are_said(tmp_path: Path) -> None:
    road_map = load(
        tmp_path,
        "edge,from,to,oneway_inferred,limit_guess_kmh,wkt",
        '1,a,b,0,36,"LINESTRING (0 0, 100 0)"',
        '2,b,c,1,36,"LINESTRING (100 0, 100 50)"',
    )
    assert [s.id for s in road_map.segments] == ["1", "-1", "2"]
    assert road_map.segments[1].speed_limit == pytest.approx(10.0)
    assert road_map.notes == ("guessed, as the file says: limit_guess_kmh, oneway_inferred",)


def test_nodes_beside(tmp_path: Path) -> None:
    for nodes in ("town_nodes.csv", "town_edges_nodes.csv", "nodes.csv"):
        (tmp_path / nodes).write_text("node,x_m,y_m\na,0,0\nb,30,40\n", encoding="utf-8")
        road_map = load(tmp_path, "id,from,to", "1,a,b")
        assert road_map.segments[0].line == ((0.0, 0.0), (30.0, 40.0))
        assert road_map.segments[0].length == 50.0
        assert road_map.notes == (f"edges are straight between the nodes of {nodes}",)
        (tmp_path / nodes).unlink()


def test_broken_tables(tmp_path: Path) -> None:
    for lines, message in (
        ([""], "line 1: expected columns from and to, got none"),
        (["id,fro,to", "1,a,b"], "line 1: expected columns from and to, got id, fro, to"),
        (["id,from,to,to", "1,a,b,c"], "2 columns have the name 'to'; rename all but one"),
        ([HEAD, "ab,a,b"], "line 2: expected 13 cells as in line 1, got 3"),
        ([HEAD, ROWS[0].replace("101.5", "long")], r"line 2 \(id 'ab'\): length_m: expected a"),
        ([HEAD, ROWS[0].replace("101.5", "0")], "length_m: expected a number above 0, got 0.0"),
        ([HEAD, ROWS[0].replace("0.5", "nan")], "slope: expected a finite number, got nan"),
        ([HEAD, ROWS[0].replace("50,1,", "50,perhaps,")], "oneway: expected 0 or 1, got 'perhaps'"),
        ([HEAD, ROWS[0].replace("100 0)", "0 0)")], "has zero length; join its junctions"),
        ([HEAD, ROWS[0].replace("LINESTRING", "POINT")], "line 2 .*: wkt: "),
        ([HEAD, ROWS[0].replace("100 0)", "nan 0)")], "point 1: expected two finite numbers"),
        ([HEAD, ROWS[0], ROWS[0]], r"line 3 \(id 'ab'\): id 'ab' is taken by line 2"),
        ([HEAD, ROWS[0]], "line 2 .*: successors: no segment 'bc' on the map"),
        (["id,from,to", "1,a,b"], "edges have no line .*, and no table of nodes is beside"),
    ):
        with pytest.raises(MapError, match=message) as caught:
            load(tmp_path, *lines)
        assert "town_edges.csv" in str(caught.value)


def test_broken_tables_of_nodes(tmp_path: Path) -> None:
    for nodes, message in (
        ("node,x_m\na,0\n", "nodes.csv, line 1: expected columns node and x_m, y_m"),
        ("node,x_m,y_m\na,0,0\n", r"line 2 \(id '1'\): to: no node 'b'"),
        ("node,x_m,y_m\na,0,0\na,1,1\n", r"nodes.csv, line 3 \(node 'a'\): id 'a' is taken"),
    ):
        (tmp_path / "nodes.csv").write_text(nodes, encoding="utf-8")
        with pytest.raises(MapError, match=message):
            load(tmp_path, "id,from,to", "1,a,b")
