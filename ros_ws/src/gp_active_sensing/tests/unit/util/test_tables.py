"""The reader of CSV tables: rows with their lines, columns by name, numbers, times, errors."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.errors import MapError
from gp_active_sensing.util.tables import EPOCH, Table


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "some.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_rows_with_their_lines(tmp_path: Path) -> None:
    for mark in (",", ";", "\t"):
        for end in ("\n", "\r\n"):
            for begin in ("", "\ufeff"):
                lines = ["name, value ", 'a,"1', '2"', "", " , ", "b,3"]
                path = written(tmp_path, begin + end.join(lines).replace(",", mark))
                with Table(path, MapError) as table:
                    assert table.header == ["name", "value"]
                    assert list(table) == [(2, ["a", f"1{end}2"]), (6, ["b", "3"])]


def test_numbers_of_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,note\n1, 2.5 ,x\nNA,1e3,y\n,None,z\n")
    with Table(path, MapError) as table:
        ((values, rows, lines),) = table.chunks(("b", "a"))
    np.testing.assert_array_equal(values, [[2.5, 1.0], [1e3, math.nan], [math.nan, math.nan]])
    assert [row[2] for row in rows] == ["x", "y", "z"]
    assert lines == [2, 3, 4]
    assert table.rows == 3


def test_fill_values_of_measured_columns_are_missing(tmp_path: Path) -> None:
    cells = ("-9999", "1e20", "-32768", "9.96921e+36", "-999.0", "NaN", "-3.4028235e38")
    lines = [f"{cell},{cell}" for cell in cells]
    path = written(tmp_path, "\n".join(["x,value", "1,2", *lines]))
    with Table(path, MapError) as table:
        ((values, _, _),) = table.chunks(("x", "value"), measured=("value",))
        assert table.fill_values == len(cells) - 1
    assert np.isnan(values[1:, 1]).all()
    assert values[1, 0] == -9999.0  # a coordinate may be anything
    assert values[0].tolist() == [1.0, 2.0]


def test_cells_that_are_no_numbers(tmp_path: Path) -> None:
    for cell in ("high", "inf", "-1e999", "nan", "1,5"):
        path = written(tmp_path, f"a;b\n1;2\n3;{cell}\n")
        with Table(path, MapError, missing=("",)) as table, pytest.raises(MapError) as caught:
            list(table.chunks(("a", "b")))
        said = f"{path}, line 3, column 'b': expected a finite number or nothing, got {cell!r}"
        assert str(caught.value) == said


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    for header, message in [
        ("a,values", r"Did you mean 'values'\? It has: a, values; say which"),
        ("value,a,value", "2 columns have the name 'value'"),
        ("", r"It has: none; say which"),
    ]:
        with Table(written(tmp_path, header), MapError) as table:
            with pytest.raises(MapError, match=message):
                table.column("value", "; say which")
            with pytest.raises(MapError, match="found none"):
                table.check_rows()


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    for text, message in (
        (b"a,b\n1,2\n\xff\xfe,1\n", r"some\.csv: cannot be read: .*; expected text in UTF-8"),
        (b'a,b\n1,2\n3,"4\n5,6\n', r"line 4: unexpected end of data; is the file cut short\?"),
        (b"a,b\n1," + b"2" * (1 << 23), "line 2: field larger than field limit"),
    ):
        with (
            pytest.raises(MapError, match=message),
            Table(written(tmp_path, text), MapError) as table,
        ):
            list(table)


def test_times_are_counted_from_the_first_or_a_given_one(tmp_path: Path) -> None:
    path = written(tmp_path, "t,v\n,1\n2024-03-01T01:30:00+01:00,2\n2024-03-01 02:00,3\n")
    for origins, unit, found in (
        (None, 3600.0, [math.nan, 0.0, 1.5]),
        ({"t": "2024-03-01", "v": EPOCH}, 60.0, [math.nan, 30.0, 120.0]),
        ({"t": EPOCH}, 1.0, [math.nan, 1709253000.0, 1709258400.0]),
    ):
        with Table(path, MapError) as table:
            ((values, _, _),) = table.chunks(("v", "t"), ("t",), origins, unit)
        np.testing.assert_array_equal(values[:, 1], found)
        assert list(table.origins) == ["t"]
    with Table(written(tmp_path, "t\n20240301\n7\n"), MapError) as table:  # a number, no date
        ((values, _, _),) = table.chunks(("t",), ("t",), {"t": EPOCH}, 1.0)
    assert values.ravel().tolist() == [20240301.0, 7.0]
