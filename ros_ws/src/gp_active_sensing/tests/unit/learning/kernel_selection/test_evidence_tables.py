"""Tables of the belief over kernels beside their exact evidence say what their pieces say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[4] / "benchmarks"

pytestmark = pytest.mark.heavy("learn")

if not FOLDER.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)

TRUE, OTHER = "PER×LIN×RQ", "PER×LIN×SE"


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    import vbks_evidence_tables

    yield vbks_evidence_tables
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def fit(q: float, lead: float, names: tuple[str, ...] = (TRUE, OTHER)) -> dict[str, Any]:
    """A fit of two kernels, the first of which leads."""
    chance = [q, 1.0 - q][: len(names)]
    bounds = [100.0 + lead, 100.0][: len(names)]
    return {
        "names": list(names), "q": chance, "softmax": chance, "bounds": bounds,
        "converged": 1, "cpu_s": 3.0,
    }  # fmt: skip


def weighed(lead: float, third: float = -50.0) -> dict[str, Any]:
    logs = {TRUE: 10.0 + lead, OTHER: 10.0, "SE": 10.0 + third}
    return {"kernels": {k: {"laplace": v, "lost": 0.25} for k, v in logs.items()}, "cpu_s": 2.0}


def test_chances_are_probabilities_however_far_apart(tables: Any) -> None:
    found = tables.chances({"a": -4e4, "b": -4e4 - 1.0, "c": 5e4 - 9e4})
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["a"] == found["c"] == pytest.approx(2.718281828 * found["b"])
    assert tables.chances({"a": 0.0, "b": -1e5}) == {"a": 1.0, "b": 0.0}


def test_evidence_counts_the_kernels_that_it_says(tables: Any) -> None:
    found = {(TRUE, 0.1): {0: weighed(0.0, 0.0), 1: weighed(2.0, 0.0)}}
    (row,) = tables.of_evidence(found, [TRUE, OTHER, "SE"], 64).rows
    assert row[:3] == (TRUE, "0.1", 2)
    third, most = 1.0 / 3.0, 0.7869860421615985
    assert row[3] == f"{(third + most) / 2:.2f} ± {(most - third) / 2:.2f}"
    assert row[4].startswith("0.69"), "SE is not among the six"
    assert row[5:] == ("1 of 2", f"+0.0 {OTHER}, +2.0 {OTHER}", "0.2", "4")


def test_fits_have_the_evidence_of_the_same_data_sets(tables: Any) -> None:
    fits = {
        (TRUE, "k12", 0.1, 1.0): {0: fit(0.8, 3.0), 1: fit(0.4, -1.0)},
        (TRUE, "k12", 0.1, 0.4): {0: fit(0.1, 0.0)},
        (TRUE, "k144", 0.1, 1.0): {2: fit(0.0, 0.0, (OTHER,))},
    }
    logs = {seed: weighed(0.0) for seed in (0, 1, 2)}
    exact = {(TRUE, 0.1): {**logs, 3: weighed(90.0)}}
    first, second = tables.of_fits(fits, exact, ("k12", [TRUE, OTHER]), "M").rows
    assert first[:7] == (TRUE, "K12", "0.1", 2, "0.60 ± 0.20", "0.60 ± 0.20", "0.50 ± 0.00")
    assert first[7:9] == ("1 of 2", f"+3.0 {OTHER}, -1.0 {OTHER}")
    assert first[9:] == ("0.80, 0.60", "0.80, 0.60", "2 of 4", "6"), "of whichever leads"
    assert second[:7] == (TRUE, "K144", "0.1", 1, "0.00", "0.00", "–"), (
        "dropped; weighed among fewer kernels only"
    )


def test_shares_are_of_data_sets_that_have_all(tables: Any) -> None:
    fits = {
        (TRUE, "k12", 0.1, 1.0): {0: fit(0.8, 3.0), 1: fit(0.4, 1.0), 2: fit(0.0, 0.0)},
        (TRUE, "k12", 0.1, 0.1): {0: fit(0.2, 0.0), 1: fit(0.1, 0.0)},
        (TRUE, "k12", 0.1, 0.4): {0: fit(0.5, 0.0), 1: fit(0.5, 0.0)},
        (TRUE, "k12", 0.03, 1.0): {0: fit(0.9, 1.0)},
    }
    fits |= {
        (TRUE, "k144", 0.1, 1.0): {0: fit(0.7, 1.0), 1: fit(0.6, 1.0)},
        (TRUE, "k144", 0.1, 0.4): {0: fit(0.3, 1.0)},
    }
    section = tables.of_shares(fits, "M")
    assert section.header[3:] == ("10 %", "40 %", "100 %")
    assert [row[2:] for row in section.rows[:2]] == [
        (1, "0.20", "0.50", "0.80"),
        (2, "0.15 ± 0.05", "0.50 ± 0.00", "0.60 ± 0.20"),
    ]
    large = section.rows[4:]
    assert [row[1:] for row in large] == [
        ("q*, K144, noise 0.1, data set 0", 1, "–", "0.30", "0.70"),
        ("softmax(L), K144, noise 0.1, data set 0", 1, "–", "0.30", "0.70"),
    ], "nothing of the noise that has one share only"


def test_starts_are_held_against_the_best_of_all(tables: Any) -> None:
    found = {
        (4, True): {0: {**fit(0.5, -2.0), "cpu_s": 1.0}},
        (16, False): {0: {**fit(0.5, 1.0), "cpu_s": 4.0}},
    }
    few, many = tables.of_starts(found, "M").rows
    assert few == (4, "yes", 1, "1", "0.25", "1.50", "3.00")
    assert many == (16, "no", 1, "4", "1.00", "0.00", "0.00")


def test_pieces_come_the_most_wanted_first_and_once(
    tables: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bench_vbks_evidence as bench

    pieces = list(bench.pieces(bench.FULL))
    keys = [piece.key for piece in pieces]
    assert len(set(keys)) == len(keys)
    assert "fit | PER×LIN×RQ | k12 | 0.1 | 1.0 | 0" in keys, "what was kept earlier is found"
    fits = [(p.where[1], p.where[3] == 1.0, p.seed) for p in pieces if p.kind == "fit"]
    blocks = list(dict.fromkeys(fits))
    assert blocks[:6] == [*(("k12", True, s) for s in range(5)), ("k12", False, 0)]
    assert blocks[6:] == [
        ("k144", True, 0),
        *(("k12", False, s) for s in range(1, 5)),
        ("k144", False, 0),
        ("k144", True, 1),
        ("k144", True, 2),
    ]
    where = [i for i, piece in enumerate(pieces) if piece.kind == "starts"]
    assert keys[where[0] - 1] == "fit | (PER+RQ)×LIN | k12 | 0.1 | 0.7 | 0"
    assert "k144" in keys[where[-1] + 1]


def test_the_picture_has_a_row_for_each_set_of_kernels(tables: Any, tmp_path: Path) -> None:
    fits = {
        (TRUE, "k12", 0.1, share): {0: fit(share, 1.0), 1: fit(share / 2, 1.0)}
        for share in (0.1, 1.0)
    }
    fits |= {(TRUE, "k144", 0.1, share): {0: fit(share, 1.0)} for share in (0.4, 1.0)}
    exact = {(TRUE, 0.1): {0: weighed(0.0), 1: weighed(1.0)}}
    tables.draw(fits, exact, ("k12", [TRUE, OTHER, "SE"]), tmp_path)
    assert (tmp_path / "vbks_evidence.png").stat().st_size > 10_000
