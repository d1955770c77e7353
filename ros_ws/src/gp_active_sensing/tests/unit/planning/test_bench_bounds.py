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


def test_what_more_paths_do_to_the_belief_is_paired() -> None:
    import bench_bounds

    curves = {
        ("tight", True): [(200, [0.5, 0.7, 0.9], []), (800, [0.3, 0.3], [])],
        ("tight", False): [(200, [0.5, 0.7], []), (800, [0.9, 0.9], [])],
        ("constant", True): [(200, [0.5, 0.7], [])],
    }
    assert list(bench_bounds.later(curves)) == ["-0.30 ± 0.10 (tight)"]


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
    assert bench_learning.BUDGETS == (5, 10, 15)
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


def test_horizons_and_budgets_are_compared_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    import bench_horizons

    played: list[tuple[Any, ...]] = []
    better = {"random": 0.0, "ie": 2.0, "ite": 1.0, "apgd": 2.0, "tight": 0.5}

    def outcomes_at(variant: Any, seed: int, marks: Any) -> dict[int, tuple[float, float]]:
        played.append((variant.label, variant.policy.get("horizon"), variant.budget, seed))
        assert variant.shuffled
        assert variant.expansions == (100 * variant.policy.get("horizon", 0) or 1)
        error = 10.0 + seed + better[variant.label] * (seed + 1) - variant.budget * 0.1
        return {made: (0.5, error) for made in marks}

    monkeypatch.setattr(bench_horizons, "outcomes_at", outcomes_at)
    monkeypatch.setattr(bench_horizons, "BOUNDS", {"tight": {}})
    bench_horizons.run(starts=2)
    assert played[-1] == ("tight", 3, 15, 1), "field by field"
    assert len(played) == 2 * (20 + 3 * 3 + 2 * 3)
    bench_horizons.play(bench_horizons.Kept("horizons", 6), bench_horizons.Line("tight", 2, 5), 2)
    section = bench_horizons.run(kept_only=True)
    rows = {row[:4]: row for row in section.rows}
    assert len(rows) == len(section.rows) == 3 + 3 * 6 + 2 * 6
    mine = rows["bal, draws, tight", 2, 5, 5]
    assert mine[4] == 3
    assert str(mine[6]) == "11.50 ± 0.87"
    # Of the two fields that both have; `random` planned for 15 readings.
    assert [str(value) for value in mine[7:]] == ["1.75 ± 0.25", "-2.25 ± 0.75", "-0.75 ± 0.25"]
    assert rows["bal, draws, tight", 3, 15, 10][4] == 2
    assert str(rows["random", "", "any", 5][7]) == "0.00 ± 0.00"
    assert "--kept-only" in section.command


def test_a_mission_is_read_off_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench_experiment1 import Variant, outcome, outcomes_at

    variant = Variant("", {"name": "ie"}, 1, True, 15)
    found = outcomes_at(variant, 3, (5, 6))
    assert list(found) == [5, 6]
    assert found[5] == outcome(variant, 3)
    assert found[6][1] != found[5][1]


def test_bal_with_a_bonus_for_the_length_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    import bench_learning

    from gp_active_sensing.planning.bal import Bal

    monkeypatch.setattr(
        bench_learning,
        "contenders",
        lambda: {
            "plain": (Bal(horizon=2, alpha=1e-9), 5000),
            "none": (bench_learning.BonusBal(horizon=2, weight=0.0, alpha=1e-9), 5000),
            "greedy": (bench_learning.Bonus(weight=4.0), 1),
            "one ahead": (bench_learning.BonusBal(horizon=1, weight=4.0), 1),
            "two ahead": (bench_learning.BonusBal(horizon=2, weight=4.0), 5000),
        },
    )
    found = {name: bench_learning.play(name, 1.0, 1, 3) for name in bench_learning.contenders()}
    assert found["plain"] == found["none"]
    assert found["greedy"] == found["one ahead"]
    assert found["two ahead"][1] > found["plain"][1], "it knows the length-scale sooner"
