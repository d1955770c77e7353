"""Rows in memory and on disk, their checks, and CSV tables that are read in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.util import tables as tables_module
from gp_active_sensing_learning.data import dataset as dataset_module
from gp_active_sensing_learning.data import table as table_module
from gp_active_sensing_learning.data.dataset import Dataset, ReadOptions


def rows(X: np.ndarray, y: np.ndarray) -> Dataset:
    return Dataset(X, y, ("x", "y")[: X.shape[1]], "value", "a test")


@pytest.fixture
def some() -> Dataset:
    rng = np.random.default_rng(0)
    return rows(rng.normal(size=(40, 2)), rng.normal(size=40))


def written(tmp_path: Path, text: str, name: str = "log.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def read_table(path: Path, inputs: tuple[str, ...], value: str = "", **how: Any) -> Dataset:
    return table_module.read_table(path, inputs, value, ReadOptions(**how))


def test_views_and_samples(some: Dataset) -> None:
    head = some.head(7)
    assert np.shares_memory(head.inputs, some.inputs)
    assert head.input_names == some.input_names
    order = some.permutation(3)
    assert sorted(order.tolist()) == list(range(40))
    assert order.tolist() == some.permutation(3).tolist() != some.permutation(4).tolist()
    X, y = some.sample(10, 5)
    assert (X.shape, y.shape) == ((10, 2), (10,))
    at = [int(np.flatnonzero(some.outputs == value)[0]) for value in y]
    assert at == sorted(set(at))  # each once, in their order
    assert (X == some.inputs[at]).all()
    assert (some.sample(99, 0)[0] == some.inputs).all()
    assert some.digest() == some.head(40).digest() != some.head(39).digest()
    assert [len(y) for _, y in some.chunks(15)] == [15, 15, 10]


def test_rows_without_a_number_are_left_out(some: Dataset) -> None:
    some.inputs[3, 1] = some.inputs[5, 0] = some.outputs[5] = np.nan
    found = some.checked()
    assert len(found) == 38
    assert np.isfinite(found.inputs).all()
    assert found.notes == ("2 of 40 rows lack a number and are left out",)
    assert len(some) == 40  # what was given stays


def test_rows_that_nothing_can_be_learned_from(some: Dataset) -> None:
    holed, infinite = some.inputs.copy(), some.outputs.copy()
    holed[:, 1] = np.nan
    infinite[11] = np.inf
    for bad, message in (
        (rows(some.inputs, np.full(40, 3.0)), "value is 3 in all 40 rows"),
        (some.head(7), "expected 8 rows or more .* got 7"),
        (some.head(0), "got 0"),
        (rows(holed, some.outputs), "column 'y' has no number in any of its 40 rows"),
        (rows(some.inputs, infinite), "value of row 11 is infinite"),
        (rows(some.inputs, np.where(np.isinf(infinite), -1e200, 0.0)), "row 11 is -1e"),
    ):
        with pytest.raises(ReadingError, match=message):
            bad.checked()


LOG = "x,y,hours,temp\n" + "".join(f"{k},{k % 3},{0.5 * k},{20 + k % 5}\n" for k in range(30))


def test_a_table(tmp_path: Path) -> None:
    found = read_table(written(tmp_path, "\ufeff" + LOG), ("x", "hours"), "temp", scale=2.0)
    assert found.input_names == ("x", "hours")
    assert found.inputs[:3].tolist() == [[0.0, 0.0], [1.0, 0.5], [2.0, 1.0]]
    assert found.outputs[:3].tolist() == [40.0, 42.0, 44.0]
    assert found.output_name == "temp"
    assert found.recipe == {"kind": "table", "times": {}, "scale": 2.0, "transform": "identity"}
    assert found.notes == ()


def test_pieces_make_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "x,temp\n" + "".join(f"{k},{k % 7}\n" for k in range(500)))
    whole = read_table(path, ("x",), "temp", folder=tmp_path)
    assert not isinstance(whole.inputs, np.memmap)
    monkeypatch.setattr(tables_module, "_CELLS", 0)  # 64 rows at a time
    monkeypatch.setattr(dataset_module, "IN_MEMORY", 100)
    found = read_table(path, ("x",), "temp", folder=tmp_path)
    assert isinstance(found.inputs, np.memmap)
    assert isinstance(found.outputs, np.memmap)
    assert not found.inputs.flags.writeable
    assert found.digest() == whole.digest()
    assert len(list(tmp_path.glob("rows-*"))) == 1


def test_times_become_hours(tmp_path: Path) -> None:
    stamps = ["2004-03-01 00:30:00", "2004-03-01T01:00:00Z", "", "2004-03-01T03:15:00.5+01:00"]
    stamps += [f"2004-03-02T{k:02}:00" for k in range(8)]
    text = "time,temp\n" + "".join(f"{stamp},{k}\n" for k, stamp in enumerate(stamps))
    found = read_table(written(tmp_path, text), ("time",), "temp")
    assert found.inputs[:4, 0] == pytest.approx([0.0, 0.5, 1.75 + 0.5 / 3600, 23.5])
    assert found.recipe["times"] == {"time": "2004-03-01T00:30:00+00:00"}
    assert "time is in hours since 2004-03-01T00:30:00+00:00" in found.notes
    # Rows that came later, from the same moment; and hours where there were stamps.
    later = {"time": "2004-03-01T00:00:00+00:00"}
    assert read_table(written(tmp_path, text), ("time",), "temp", origins=later).inputs[0] == 0.5
    plain = written(tmp_path, "time,temp\n" + "".join(f"{k},{k % 4}\n" for k in range(9)))
    assert read_table(plain, ("time",), "temp", origins=later).inputs[8, 0] == 8.0


def test_missing_cells_are_counted_and_said(tmp_path: Path) -> None:
    lines = LOG.splitlines()
    lines[2], lines[5] = "1,,0.5,21", "4,1,nan,24"
    lines[9] = "8,2"  # cut off
    lines[12] = ""  # an empty line is no row
    found = read_table(written(tmp_path, "\n".join(lines)), ("x", "y", "hours"), "temp")
    assert len(found) == 26
    assert found.notes == (
        "3 of 29 rows lack a number and are left out: y in line 3; hours in lines 6, 10",
    )


def test_tables_that_cannot_be_used(tmp_path: Path) -> None:
    row = "1,1,0.5,21"
    nothing = "x,y,hours,temp\n" + "".join(f"{k},,{k},{k}\n" for k in range(20))
    for text, message in (
        (LOG.replace(row, "1,1,0.5,warm"), "line 3, column 'temp': .*'warm'"),
        (LOG.replace(row, "1,1,inf,21"), "line 3, column 'hours': .*'inf'"),
        (LOG.replace("x,y", "x,x"), "2 columns have the name 'x'"),
        (LOG.replace("hours", "hour"), "Did you mean 'hour'"),
        ("x,y,hours,temp\n", "expected rows below the header"),
        ("", "expected a column 'temp'"),
        (nothing, "column 'y' has no number in any of its 20 rows"),
    ):
        with pytest.raises(ReadingError, match=message):
            read_table(written(tmp_path, text), ("x", "y", "hours"), "temp")
    with pytest.raises(ReadingError, match="which column has the values"):
        read_table(written(tmp_path, LOG), ("x", "y"))
    with pytest.raises(ReadingError, match="temp: expected a value above 0"):
        read_table(written(tmp_path, nothing), ("x",), "temp", transform="log")
    with pytest.raises(ReadingError, match="cannot be read"):
        read_table(tmp_path / "none.csv", ("x",), "temp")
    (tmp_path / "bytes.csv").write_bytes(b"x,temp\n1,2\n\xff\xfe,1\n")
    with pytest.raises(ReadingError, match="cannot be read"):
        read_table(tmp_path / "bytes.csv", ("x",), "temp")
    times = "x,time\n" + "".join(f"{k},2004-03-{k + 1:02}\n" for k in range(20))
    with pytest.raises(ReadingError, match="column 'time': expected a finite number"):
        read_table(written(tmp_path, times), ("x",), "time")
    with pytest.raises(ReadingError, match="line 9, column 'time'"):
        read_table(written(tmp_path, times.replace("2004-03-08", "noon")), ("time",), "x")
