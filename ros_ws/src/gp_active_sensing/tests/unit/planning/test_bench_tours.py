"""The benchmark of a tour's decisions runs, at its smallest size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"

if not BENCHMARKS.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_a_mission_is_measured() -> None:
    from bench_tours import BELIEFS, Line, grid, measure

    found = measure(Line(grid(5, 4), BELIEFS["24 λ"], 8, stages=2))
    assert (found["places"], found["candidates"]) == (20, 24)
    assert 2 < found["tried"] <= 500
    assert found["cut_off"] == 0.0
    assert all(found[key] > 0.0 for key in ("at_once", "first", "later", "median", "mb"))


def test_each_thing_is_varied_alone() -> None:
    from bench_tours import GRIDS, MOVES, lines

    found = lines(Path("city.geojson"), smoke=False)
    assert [varied for varied, _, _ in found].count("places") == len(GRIDS) + 1
    moves = [line.moves for varied, _, line in found if varied == "moves"]
    assert tuple(moves) == MOVES
    assert len({str(line.map) for varied, _, line in found if varied != "places"}) == 1


@pytest.mark.slow
def test_the_report_has_a_line_for_each() -> None:
    from bench_tours import run

    section = run(smoke=True)
    assert len(section.rows) == 1
    assert len(section.rows[0]) == len(section.header)
    assert "nan" not in section.markdown()
