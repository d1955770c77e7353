"""Rows in memory and on disk, what is checked of them, and CSV tables read piece by piece."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ReadingError
from gp_active_sensing.util import tables as tables_module
from gp_active_sensing_learning.data import dataset as dataset_module
from gp_active_sensing_learning.data import table as table_module
from gp_active_sensing_learning.data.dataset import Dataset, ReadOptions
from tests.cases import for_each


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


# -- Rows ----------------------------------------------------------------------------------------


def test_views_and_samples(some: Dataset) -> None:
    head = some.head(7)
    assert len(head) == 7
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
    with pytest.raises(ReadingError, match=r"a test: value is 3 in all 40 rows"):
        rows(some.inputs, np.full(40, 3.0)).checked()
    with pytest.raises(ReadingError, match="value is 0 in all"):
        rows(some.inputs, np.zeros(40)).checked()
    with pytest.raises(ReadingError, match=r"expected 8 rows or more .* got 7"):
        some.head(7).checked()
    with pytest.raises(ReadingError, match="got 0"):
        some.head(0).checked()
    some.inputs[:, 1] = np.nan
    with pytest.raises(ReadingError, match="column 'y' has no number in any of its 40 rows"):
        some.checked()
    some.inputs[:, 1] = 0.0
    some.outputs[11] = np.inf
    with pytest.raises(ReadingError, match="value of row 11 is infinite"):
        some.checked()
    some.outputs[11] = -1e200
    with pytest.raises(
        ReadingError, match=r"row 11 is -1e\+200; expected a number within ±1e\+100"
    ):
        some.checked()


def test_what_is_said_of_inputs(some: Dataset) -> None:
    some.inputs[20:] = some.inputs[:20]
    some.inputs[0, 0], some.inputs[20, 0] = 0.0, -0.0  # one and the same number
    found = some.checked()
    assert len(found) == 40  # all are used
    assert found.notes == ("20 of 40 rows have inputs that came before; all are used",)
    some.inputs[:, 1] = 7.0
    assert "y is 7 in every row" in some.checked().notes[0]


# -- tables --------------------------------------------------------------------------------------

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


@for_each(
    ("change", "message"),
    [
        (
            ("1,1,0.5,21", "1,1,0.5,warm"),
            r"line 3, column 'temp': expected a finite number .*'warm'",
        ),
        (
            ("1,1,0.5,21", "1,1,inf,21"),
            r"line 3, column 'hours': expected a finite number, .*'inf'",
        ),
        (("x,y", "x,x"), r"2 columns have the name 'x'"),
        (
            ("hours", "hour"),
            r"expected a column 'hours'\. Did you mean 'hour'\? It has: x, y, hour, temp",
        ),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = written(tmp_path, LOG.replace(*change, 1))
    with pytest.raises(ReadingError, match=message):
        read_table(path, ("x", "y", "hours"), "temp")


def test_other_things_wrong_with_a_table(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match=r"which column has the values.*got hours, temp"):
        read_table(written(tmp_path, LOG), ("x", "y"))
    with pytest.raises(
        ReadingError, match=r"expected rows below the header \(x, temp\), found none"
    ):
        read_table(written(tmp_path, "x,temp\n"), ("x",), "temp")
    with pytest.raises(ReadingError, match=r"expected a column 'temp'\. It has: none"):
        read_table(written(tmp_path, ""), ("x",), "temp")
    with pytest.raises(ReadingError, match="cannot be read: No such file"):
        read_table(tmp_path / "none.csv", ("x",), "temp")
    (tmp_path / "bytes.csv").write_bytes(b"x,temp\n1,2\n\xff\xfe,1\n")
    with pytest.raises(ReadingError, match="cannot be read"):
        read_table(tmp_path / "bytes.csv", ("x",), "temp")
    nothing = "x,y,temp\n" + "".join(f"{k},,{k}\n" for k in range(20))
    with pytest.raises(ReadingError, match="column 'y' has no number in any of its 20 rows"):
        read_table(written(tmp_path, nothing), ("x", "y"), "temp")
    with pytest.raises(ReadingError, match=r"temp: expected a value above 0 .* logarithm"):
        read_table(written(tmp_path, nothing), ("x",), "temp", transform="log")
    times = "x,time\n" + "".join(f"{k},2004-03-{k + 1:02}\n" for k in range(20))
    with pytest.raises(
        ReadingError, match="column 'time': expected a finite number or nothing, got '2004-03-01'"
    ):
        read_table(written(tmp_path, times), ("x",), "time")
    with pytest.raises(
        ReadingError, match=r"line 9, column 'time': expected a time such as .*'noon'"
    ):
        read_table(written(tmp_path, times.replace("2004-03-08", "noon")), ("time",), "x")


@pytest.mark.slow
@pytest.mark.long
def test_a_long_log_needs_little_memory(tmp_path: Path) -> None:
    """Three times as many rows, hardly more memory: what grows is on disk."""
    code = (
        "import json, resource, sys\nfrom pathlib import Path\n"
        "from gp_active_sensing_learning.data.dataset import ReadOptions\n"
        "from gp_active_sensing_learning.data.table import read_table\n"
        "peaks = []\n"
        "for name in sys.argv[1:]:\n"
        "    path = Path(name)\n"
        "    rows = read_table(path, ('x', 'y'), 'temp', ReadOptions(folder=path.parent))\n"
        "    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
        "print(json.dumps(peaks))\n"
    )
    paths = []
    for count in (105_000, 300_000):
        line = "{0},{1},{2}\n"
        text = "".join(line.format(k * 0.25, k % 977, k % 13) for k in range(count))
        paths.append(str(written(tmp_path, "x,y,temp\n" + text, f"{count}.csv")))
    done = subprocess.run(
        [sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True
    )
    small, large = json.loads(done.stdout)
    # 195,000 rows more are 4.7 MB on disk, and hashes to find repeated inputs.
    assert large - small < 25.0
