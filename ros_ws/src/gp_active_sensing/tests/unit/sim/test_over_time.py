from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError, MapError
from gp_active_sensing.records.ground_truth import GroundTruth
from gp_active_sensing.sim import FieldConfig, build_truth
from gp_active_sensing.sim.fields.plume import PlumeConfig
from gp_active_sensing.sim.traffic import TrafficConfig
from gp_active_sensing.topology import make_line

TABLE = """time,0,note,2,1
0,1.0,dry,3.0,2.0
10,5.0,wet,7.0,6.0
40,8.0,,10.0,9.0
"""


def wide(tmp_path: Path, text: str = TABLE, **keys: object) -> GroundTruth:
    path = tmp_path / "series.csv"
    path.write_text(text, encoding="utf-8")
    config = FieldConfig(kind="table", file=str(path), **{"time_column": "time", **keys})  # type: ignore[arg-type]
    return build_truth(config, make_line(3, 1.0), 0)


def test_a_line_for_each_time_holds_until_the_next(tmp_path: Path) -> None:
    truth = wide(tmp_path)
    assert truth.changes
    for seconds, expected in ((0, [1, 2, 3]), (9.9, [1, 2, 3]), (10, [5, 6, 7]), (99, [8, 9, 10])):
        assert truth.at(seconds).tolist() == expected


def test_linear_goes_from_line_to_line(tmp_path: Path) -> None:
    truth = wide(tmp_path, between="linear", start_time=5.0, scale=2.0, offset=1.0)
    np.testing.assert_allclose(truth.at(0.0), [7.0, 9.0, 11.0])
    np.testing.assert_allclose(truth.at(20.0), 1.0 + 2.0 * np.array([6.5, 7.5, 8.5]))
    np.testing.assert_allclose(truth.at(1e6), [17.0, 19.0, 21.0])


def test_dates_are_times(tmp_path: Path) -> None:
    text = "when,0,1,2\n2026-05-01T12:00:00Z,1,1,1\n2026-05-01T14:00:30+02:00,2,2,2\n"
    truth = wide(tmp_path, text, time_column="when")
    assert [truth.at(s)[0] for s in (29.0, 31.0)] == [1.0, 2.0]


def test_tables_that_cannot_be_used(tmp_path: Path) -> None:
    for text, message in (
        ("tme,0,1,2\n0,1,1,1\n", r"expected a column 'time'\. Did you mean 'tme'.*name .* as"),
        ("time,0,1\n0,1,1\n", r"no value in a column of its own for 1 of 3 places .*: 2;"),
        ("time,0,1,2,2\n0,1,1,1,1\n", r"2 columns have the name '2'"),
        ("time,0,1,2\n", r"expected rows below the header \(time, 0, 1, 2\), found none"),
        ("time,0,1,2\n0,1,1\n", r"line 2: expected 4 cells as in line 1, got 3"),
        ("time,0,1,2\n0,1,1,1\n0,1,1,1\n", r"line 3: expected a time after 0 s, got 0 s"),
        ("time,0,1,2\nnoon,1,1,1\n", r"line 2, column 'time': expected .* or a time such as"),
        ("time,0,1,2\n0,1,x,1\n", r"line 2, column '1': expected a finite number or nothing, got"),
        ("time,0,1,2\nnan,1,1,1\n", r"line 2, column 'time': expected a finite .*, got 'nan'"),
    ):
        with pytest.raises(MapError, match=message):
            wide(tmp_path, text)


def test_a_table_with_a_column_of_times_has_no_other_columns() -> None:
    with pytest.raises(ConfigError, match="value_columns"):
        FieldConfig(kind="table", file="a.csv", time_column="t", value_columns=("a",))


def test_keys_that_were_removed_say_what_replaces_them() -> None:
    for config, key, replaced in (
        (FieldConfig, "layout", "time_column"),
        (FieldConfig, "slot_seconds", "time_column"),
        (FieldConfig, "fit", "map.low"),
        (PlumeConfig, "turn_rate", "swing"),
        (TrafficConfig, "step_length", "options"),
    ):
        with pytest.raises(ConfigError, match=f"{key}: was removed; .*{replaced}"):
            from_mapping(config, {key: 1})
