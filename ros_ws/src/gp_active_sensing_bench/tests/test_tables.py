"""Tables against numbers worked out by hand."""

from __future__ import annotations

import csv
import io
import math

import pytest

from bench_support.small import made
from gp_active_sensing.errors import UnknownNameError
from gp_active_sensing_bench import METRICS, differences, mean_of, metrics, summary
from gp_active_sensing_bench.plan import ExperimentConfig
from gp_active_sensing_bench.records import one_field_notes
from gp_active_sensing_bench.tables import to_csv, to_markdown, to_text
from tests.unit.sim.scenarios import GRID, scenario


def test_means_and_standard_errors_over_the_seeds() -> None:
    records = [made("a", seed, [9.0, value]) for seed, value in enumerate([1.0, 2.0, 6.0])]
    table = summary([*records, made("b", 0, [5.0, 4.0])], "rmspe", [1, 2])
    assert (table.title, table.metric, table.unit) == ("RMSPE", "rmspe", "K")
    assert table.columns == (1, 2)
    a, b = table.rows
    assert (a.policy, b.policy) == ("a", "b")
    assert a.cells[0] == (9.0, 0.0)
    # sd² = (4 + 1 + 9) / 2 = 7, error = sqrt(7 / 3)
    assert a.cells[1] == pytest.approx((3.0, math.sqrt(7 / 3)))
    assert a.counts == (3, 3)
    assert b.cells[1] is not None
    assert math.isnan(b.cells[1].error)
    for values in ([], [1.0, math.nan]):
        with pytest.raises(ValueError, match="finite"):
            mean_of(values)
    with pytest.raises(UnknownNameError):
        summary([], "rmpse", [1])


def test_missions_of_their_own_count_at_their_own_budget_only() -> None:
    records = [made("a", 0, [8.0], budget=1), made("a", 0, [7.0, 5.0], budget=2)]
    (row,) = summary(records, "rmspe", [1, 2]).rows
    assert [cell and cell.mean for cell in row.cells] == [8.0, 5.0]
    assert row.counts == (1, 1)


def test_pairs_are_the_seeds_that_both_have() -> None:
    records = [made("base", s, [v]) for s, v in {0: 10.0, 1: 20.0, 2: 30.0}.items()]
    records += [made("mine", s, [v]) for s, v in {1: 19.0, 2: 26.0, 3: 0.0}.items()]
    (row,) = differences(records, "rmspe", [1, 2], "base").rows
    assert row.policy == "mine"
    # -1 and -4: mean -2.5, sd = 3 / sqrt(2), error = 1.5
    assert row.cells[0] == pytest.approx((-2.5, 1.5))
    assert (row.counts, row.cells[1]) == ((2, 0), None)


def test_configurations_are_never_mixed() -> None:
    records = [made("a", 0, [v], configuration=c) for v, c in ((1.0, "x"), (2.0, "y"))]
    records.append(made("b", 0, [5.0], configuration="x"))
    rows = summary(records, "rmspe", [1]).rows
    assert [(r.configuration, r.policy) for r in rows] == [("x", "a"), ("y", "a"), ("x", "b")]
    (row,) = differences(records, "rmspe", [1], "a").rows
    assert (row.configuration, row.cells[0] and row.cells[0].mean) == ("x", 4.0)


def test_what_has_no_value_is_not_counted() -> None:
    records = [made("a", 0, [None, 2.0]), made("a", 1, [4.0]), made("a", 2, ["nan", 3.0])]
    (row,) = summary(records, "rmspe", [1, 2, 3]).rows
    assert row.counts == (1, 2, 0)
    assert [cell and cell.mean for cell in row.cells] == [4.0, 2.5, None]


def test_metrics_by_hand() -> None:
    # A stage that gave no reading is part of the way.
    record = made("a", 0, [5.0, 5.0, 3.0], observed=[1, 1, 2], plan_seconds=[1.0, 2.0, 6.0])
    asked = made("a", 0, [5.0, 4.0], expanded=[3, 5], upper=[2.0, 1.5], expert_used=[3, 4])
    for one, name, readings, value in (
        (record, "rmspe", 1, 5.0),
        (record, "rmspe", 2, 3.0),
        (record, "rmspe", 3, None),
        (record, "total_plan_seconds", 1, 1.0),
        (record, "total_plan_seconds", 2, 9.0),
        (record, "plan_seconds", 2, 3.0),
        (record, "driven_metres", 2, 7.0),
        (record, "nlpd", 1, 1.0),
        (record, "expert_answers", 2, None),
        (asked, "expanded", 2, 4.0),
        (asked, "gap", 2, 0.75),
        (asked, "expert_answers", 2, 7.0),
        (made("a", 0, [5.0], upper=["inf"]), "gap", 1, None),
    ):
        assert METRICS[name].of(one, readings) == value, (name, readings)


def test_weight_of_the_true_length_scale() -> None:
    weights = [0.5**k for k in range(12)]
    several = {"signal_std": [4.0, 5.0], "noise_std": [0.1, 0.2, 0.3]}
    for sections, indices in (
        ({}, (1,)),
        ({"field": {"length_scale": 3.0}}, ()),
        ({"field": {"kernel": "matern32"}}, ()),
        ({"belief": several}, tuple(range(6, 12))),
    ):
        config = scenario(**sections).to_mapping()
        assert metrics.true_weight_indices(config) == indices
        record = made("a", 0, [1.0], config=config, weights=[weights])
        expected = sum(weights[i] for i in indices) if indices else None
        assert METRICS["true_weight"].of(record, 1) == expected
    for_each = scenario(GRID, belief={"length_scales": [[10, 20], [20, 20], 10]}).to_mapping()
    assert metrics.true_weight_indices(for_each) == (1,)


def test_a_table_of_one_seed_has_no_standard_error_and_no_minus_zero() -> None:
    table = summary([made("a", 0, [-0.001, 5.0]), made("b", 0, [1.25, 1.5])], "rmspe", [1, 2])
    markdown = to_markdown(table).splitlines()
    assert "±" not in "".join([*markdown, *to_text(table)])
    assert markdown[6].startswith("| a | 0.0 | 5.0 |")


def test_as_markdown_text_and_csv() -> None:
    records = [made("a", s, [10.0 + s, 5.0]) for s in range(4)] + [made("b|c", 0, [1.25])]
    table = summary(records, "rmspe", [1, 2])
    markdown = to_markdown(table).splitlines()
    assert markdown[4] == "| policy | 1 readings | 2 readings | n |"
    assert markdown[6] == "| a | 11.50 ± 0.65 | 5.00 ± 0.00 | 4 |"
    assert markdown[7] == "| b\\|c | 1.25 (1) | – (0) | in brackets |"
    assert to_text(table)[1].split() == ["policy", "1", "readings", "2", "readings", "n"]
    rows = list(csv.DictReader(io.StringIO(to_csv([table]))))
    found = [(r["policy"], r["readings"], r["count"], float(r["mean"])) for r in rows]
    assert found == [("a", "1", "4", 11.5), ("a", "2", "4", 5.0), ("b|c", "1", "1", 1.25)]
    assert float(rows[0]["standard_error"]) == pytest.approx(math.sqrt(5 / 3) / 2)
    assert rows[2]["standard_error"] == ""
    assert to_csv([summary([], "rmspe", [1])]).count("\n") == 1


def test_seeds_on_one_field_have_a_note() -> None:
    def notes(kind: str, seeds: tuple[int, ...] = (0, 1), **config: tuple[str, ...]) -> int:
        field = {"field": {"kind": kind, "unit": "K"}}
        records = [made(seed=s, configuration=c, config=field) for c in ("x", "y") for s in seeds]
        return len(list(one_field_notes(ExperimentConfig(scenario="line", **config), records)))

    assert notes("table") == notes("formula") == 2
    assert notes("gp") == notes("sumo") == 0
    assert notes("table", (0,)) == notes("table", seeded=("map.seed",)) == 0
