"""The benchmarks of Experiment 1 keep what they played, and compare what was played on both."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"

if not BENCHMARKS.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("GPAS_KEPT", str(tmp_path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_what_is_kept_is_not_played_again(tmp_path: Path) -> None:
    from common import Kept

    played: list[int] = []

    def play() -> tuple[float, float]:
        played.append(1)
        return 0.25, 9.5

    assert Kept("bounds", 2).get(("tight", 3), play) == (0.25, 9.5)
    again = Kept("bounds", 2)
    assert ("tight", 3) in again
    assert ("tight", 4) not in again
    assert again.get(("tight", 3), play) == (0.25, 9.5)
    assert len(played) == 1
    assert json.loads((tmp_path / "bounds.jsonl").read_text()) == ["tight", 3, 0.25, 9.5]


@pytest.mark.parametrize("damage", ['["tight", 3, 0.2', '["tight", 3]', "7"])
def test_a_damaged_line_is_named(tmp_path: Path, damage: str) -> None:
    from common import Kept

    (tmp_path / "bounds.jsonl").write_text(f'["tight", 3, 0.5, 9.0]\n{damage}\n')
    with pytest.raises(ValueError, match=r"bounds\.jsonl, line 2: expected a JSON list of 4 val"):
        Kept("bounds", 2)


def test_lines_have_as_many_fields_as_were_played(monkeypatch: pytest.MonkeyPatch) -> None:
    import bench_bounds

    played = []

    def outcome(variant: Any, seed: int) -> tuple[float, float]:
        played.append((variant.label, variant.expansions, variant.shuffled, seed))
        return 0.5, 10.0 + seed

    monkeypatch.setattr(bench_bounds, "outcome", outcome)
    monkeypatch.setattr(bench_bounds, "FIELDS", 2)
    monkeypatch.setattr(bench_bounds, "PATHS", (50,))
    section = bench_bounds.run(starts=2)
    assert [row[0] for row in section.rows] == list(bench_bounds.BOUNDS)
    assert {row[2] for row in section.rows} == {2}
    kept = bench_bounds.Kept("bounds", 4)
    bench_bounds.outcomes(kept, "tight", 50, True, 5)
    bench_bounds.outcomes(kept, "tight", 100, True, 1)
    monkeypatch.setattr(bench_bounds, "PATHS", (50, 100))
    section = bench_bounds.run(kept_only=True)
    found = {(row[0], row[1]): row for row in section.rows}
    assert (found["tight", 50][2], found["tight", 50][6]) == (2, 5)
    assert f"{found['tight', 50][8]}" == "12.00 ± 0.71"
    assert f"{found['tight', 50][9]}" == "0.00 ± 0.00"  # `random` had 10 + seed as well
    assert ("tight", 100) not in found
    assert "10 of 20 lines" in section.text


def test_policies_are_compared_on_the_seeds_that_both_had(monkeypatch: pytest.MonkeyPatch) -> None:
    import bench_learning

    better = {"random": 0.0, "tour": -3.0, "ie": -1.0}
    monkeypatch.setattr(bench_learning, "contenders", lambda: better)
    monkeypatch.setattr(
        bench_learning,
        "outcome",
        lambda name, scale, seed, budget: (100.0 + better[name] * (seed + 1) + scale, 0.5),
    )
    bench_learning.run(starts=2)
    kept = bench_learning.Kept("learning", 4)
    for scale in bench_learning.LENGTH_SCALES:
        kept.get((5, "ie", scale, 2), lambda: (50.0, 0.5))
        kept.get((5, "ie", scale, 4), lambda: (0.0, 0.5))  # seed 3 was not played
    section = bench_learning.run(kept_only=True)
    assert "After 15 readings `tour` less `random`, by ℓ: -4.50 ± 1.50 (1), -4.50" in section.text
    rows = {(row[0], row[1]): row for row in section.rows}
    assert rows[5, "ie"][2] == 3
    assert rows[15, "ie"][2] == rows[5, "tour"][2] == 2
    shown = [str(value) for value in rows[5, "ie"][3:]]
    assert shown[1:3] == ["-1.50 ± 0.50", "3.00 ± 1.00"]  # seeds 0 and 1
    assert shown[5:7] == shown[1:3]
    over_all = np.mean(bench_learning.LENGTH_SCALES)
    assert shown[4].split(" ")[0] == f"{(99 + 98 + 2 * over_all + 50) / 3:.2f}"


def test_a_mission_with_random_places_is_played() -> None:
    import bench_learning

    error, belief = bench_learning.play("random", 6.0, 0, 3)
    other, _ = bench_learning.play("random", 6.0, 0, 3, draw=1)
    assert error > 0.0
    assert 0.0 < belief < 1.0
    assert error != other
