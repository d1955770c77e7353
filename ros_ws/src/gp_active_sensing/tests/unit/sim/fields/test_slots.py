from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim import FieldConfig, build_truth, build_world, load_scenario
from gp_active_sensing.topology import make_line

LINE = make_line(3, 1.0)
TABLE = "id,v_0_10,v_10_20,v_20_30,v_all\n0,1,3,5,2\n1,10,30,50,20\n2,100,300,500,200\n"
XML = """<meandata>
<interval begin="0.00" end="10.00" id="x"><edge id="0" speed="1"/><edge id="1" speed="10"/>
<edge id="2" speed="100" density="3"/><edge id="elsewhere" speed="7"/></interval>
<interval begin="10.00" end="20.00" id="x"><edge id="0" speed="3"/><edge id="1" speed="30"/>
<edge id="2" density="0"/></interval>
</meandata>"""


def truth_of(path: Path, text: str | bytes, **more: Any) -> GroundTruth:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return build_truth(FieldConfig(kind="table", file=str(path), **more), LINE, 0)


def slotted(tmp_path: Path, text: str = TABLE, **more: Any) -> GroundTruth:
    return truth_of(tmp_path / "t.csv", text, **{"value_columns": ("v_[0-9]*",), **more})


def test_steps(tmp_path: Path) -> None:
    truth = slotted(tmp_path)
    assert truth.changes
    times = (0.0, 9.99, 10.0, 25.0, 30.0, 1e6, -5.0)
    assert [truth.at(t)[0] for t in times] == [1, 1, 3, 5, 5, 5, 1]
    np.testing.assert_array_equal(truth.at(12.0), [3, 30, 300])
    with pytest.raises(ValueError, match="read-only"):
        truth.at(3.0)[0] = 9.0


def test_linear_from_middle_to_middle(tmp_path: Path) -> None:
    truth = slotted(tmp_path, between="linear")
    times = (0.0, 5.0, 7.5, 15.0, 22.5, 25.0, 99.0)
    np.testing.assert_allclose([truth.at(t)[0] for t in times], [1, 1, 1.5, 3, 4.5, 5, 5])


def test_the_mission_may_begin_later_in_the_table(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert slotted(tmp_path, start_time=20.0).at(0.0)[0] == 5
    assert slotted(tmp_path, start_time=5.0).at(5.0)[0] == 3
    assert not caplog.records
    assert slotted(tmp_path, start_time=99.0).at(0.0)[0] == 5
    assert "start_time 99 s is outside its slots, 0 to 30 s" in caplog.text


def test_columns_are_ordered_by_time_and_scaled(tmp_path: Path) -> None:
    names = ("v_20_30", "v_0_10", "v_10_20")
    truth = slotted(tmp_path, value_columns=names, scale=2.0, offset=-1.0)
    assert [truth.at(t)[0] for t in (0.0, 10.0, 20.0)] == [1, 5, 9]


def test_empty_cells_come_from_the_nearest_slot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = TABLE.replace("1,10,30,50", "1,,30,").replace("2,100,300,500", "2,100,,500")
    truth = slotted(tmp_path, text)
    np.testing.assert_array_equal(truth.at(0.0), [1, 30, 100])
    np.testing.assert_array_equal(truth.at(10.0), [3, 30, 100])  # the earlier of two equally near
    np.testing.assert_array_equal(truth.at(20.0), [5, 30, 500])
    assert "3 of 9 cells are empty and filled from other slots of the same place" in caplog.text


def test_a_place_without_any_value(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = TABLE.replace("1,10,30,50", "1,,,")
    with pytest.raises(MapError, match=r"no value in columns 'v_0_10', .* for 1 of 3 .*: 1; give"):
        slotted(tmp_path, text)
    np.testing.assert_array_equal(slotted(tmp_path, text, fill=-4.0).at(15.0), [3, -4, 300])
    assert "for 1 of 3 places of map 'line': 1; filled with -4" in caplog.text
    with pytest.raises(MapError, match="for 3 of 3 places"):
        slotted(tmp_path, "id,v_0_10,v_10_20\n7,1,1\n", fill=1.0)


def test_tables_that_cannot_be_used(tmp_path: Path) -> None:
    for text, more, message in (
        (TABLE, {"value_columns": ("w_*",)}, "expected a column 'w_"),
        (TABLE, {"value_columns": ("v_*",)}, "column 'v_all' .* does not say its time slot"),
        (TABLE.replace("v_10_20", "v_5_20"), {}, "do not overlap, got 0 to 10 s and then 5 to 20"),
        (TABLE.replace("30,50", "thirty,50"), {}, "line 3, column 'v_10_20': .*got 'thirty'"),
    ):
        with pytest.raises(MapError, match=message):
            slotted(tmp_path, text, **more)


def test_edgedata(tmp_path: Path) -> None:
    for name in ("e.xml", "e.xml.gz"):
        text = gzip.compress(XML.encode()) if name.endswith("gz") else XML
        truth = truth_of(tmp_path / name, text, value_column="speed", scale=2.0)
        np.testing.assert_array_equal(truth.at(0.0), [2, 20, 200])
        np.testing.assert_array_equal(truth.at(10.0), [6, 60, 200])  # no car on 2: from before


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY a{i} "{f"&a{i - 1 or str()};" * 10}">' for i in range(1, 9))
    + "]><meandata>&a8;</meandata>"
)


def test_edgedata_that_cannot_be_used(tmp_path: Path) -> None:
    for name, text, message in (
        ("e.xml", XML[:200], "is not valid XML, perhaps truncated"),
        ("e.xml.gz", gzip.compress(XML.encode())[:-20], "the gzip file is cut short"),
        ("e.xml", BOMB, "declares a document type or entities"),
        ("e.xml", "<net><edge id='0'/></net>", "begins with <meandata>, got <net>"),
        ("e.xml", XML.replace("speed=", "speeds="), "no edge has an attribute 'speed'.*'speeds'"),
        ("e.xml", XML.replace('speed="30"', 'speed="nan"'), "edge '1' of interval 2: expected a"),
        ("e.xml", XML.replace('"elsewhere"', '"0"'), "edge '0' of interval 1 is there twice"),
        ("e.xml", XML.replace('end="10.00"', 'end="soon"'), "expected numbers as begin and end"),
        ("e.xml", XML.replace('begin="10.00"', 'begin="5"'), "do not overlap"),
    ):
        with pytest.raises(MapError, match=message):
            truth_of(tmp_path / name, text, value_column="speed")


def test_the_shipped_scenario() -> None:
    truth = build_world(load_scenario("town_slots")).truth
    first, last = truth.at(0.0), truth.at(3600.0)
    assert truth.changes
    assert 1.0 < np.sqrt(np.mean(np.square(first - last))) < 6.0, "km/h"
    np.testing.assert_array_equal(truth.at(9e9), last)
