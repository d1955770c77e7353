"""Tables against numbers worked out by hand."""

from __future__ import annotations

import csv
import io
import math

import pytest

from bench_support.small import made
from gp_active_sensing.errors import UnknownNameError
from gp_active_sensing_bench import METRICS, differences, metrics, summary
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
    assert b.cells[1].mean == 4.0
    assert math.isnan(b.cells[1].error)


def test_missions_of_their_own_count_at_their_own_budget_only() -> None:
    records = [made("a", 0, [8.0], budget=1), made("a", 0, [7.0, 5.0], budget=2)]
    (row,) = summary(records, "rmspe", [1, 2]).rows
    assert [cell.mean for cell in row.cells] == [8.0, 5.0]
    assert row.counts == (1, 1)


def test_pairs_are_the_seeds_that_both_have() -> None:
    records = [made("base", s, [v]) for s, v in {0: 10.0, 1: 20.0, 2: 30.0}.items()]
    records += [made("mine", s, [v]) for s, v in {1: 19.0, 2: 26.0, 3: 0.0}.items()]
    table = differences(records, "rmspe", [1, 2], "base")
    (row,) = table.rows
    assert row.policy == "mine"
    # -1 and -4: mean -2.5, sd = 3 / sqrt(2), error = 1.5
    assert row.cells[0] == pytest.approx((-2.5, 1.5))
    assert row.counts == (2, 0)
    assert row.cells[1] is None
    assert "base" in table.title


def test_configurations_are_never_mixed() -> None:
    records = [
        made("a", 0, [1.0], configuration="x"),
        made("b", 0, [5.0], configuration="x"),
        made("a", 0, [2.0], configuration="y"),
    ]
    assert [(r.configuration, r.policy) for r in summary(records, "rmspe", [1]).rows] == [
        ("x", "a"),
        ("x", "b"),
        ("y", "a"),
    ]
    rows = differences(records, "rmspe", [1], "a").rows
    assert [(r.configuration, r.cells[0].mean) for r in rows] == [("x", 4.0)]


def test_what_has_no_value_is_not_counted() -> None:
    records = [made("a", 0, [None, 2.0]), made("a", 1, [4.0]), made("a", 2, ["nan", 3.0])]
    (row,) = summary(records, "rmspe", [1, 2, 3]).rows
    assert row.counts == (1, 2, 0)
    assert row.cells[0].mean == 4.0
    assert row.cells[1].mean == 2.5
    assert row.cells[2] is None


def test_a_stage_that_gave_no_reading_is_part_of_the_way() -> None:
    record = made("a", 0, [5.0, 5.0, 3.0], observed=[1, 1, 2], plan_seconds=[1.0, 2.0, 6.0])
    assert METRICS["rmspe"].of(record, 1) == 5.0
    assert METRICS["rmspe"].of(record, 2) == 3.0
    assert METRICS["total_plan_seconds"].of(record, 1) == 1.0
    assert METRICS["total_plan_seconds"].of(record, 2) == 9.0
    assert METRICS["plan_seconds"].of(record, 2) == 3.0
    assert METRICS["rmspe"].of(record, 3) is None


def test_the_other_metrics() -> None:
    record = made("a", 0, [5.0, 4.0], expanded=[3, 5], upper=[2.0, 1.5], driven_metres=[2.0, 7.0])
    assert METRICS["expanded"].of(record, 2) == 4.0
    assert METRICS["gap"].of(record, 2) == 0.75
    assert METRICS["driven_metres"].of(record, 2) == 7.0
    assert METRICS["nlpd"].of(record, 1) == 1.0
    asked = made("a", 0, [5.0, 4.0], expert_used=[3, 4])
    assert METRICS["expert_answers"].of(asked, 2) == 7.0
    assert METRICS["expert_answers"].of(record, 2) is None
    infinite = made("a", 0, [5.0], upper=["inf"])
    assert METRICS["gap"].of(infinite, 1) is None


@pytest.mark.parametrize(
    ("sections", "indices"),
    [
        ({}, (1,)),
        ({"field": {"length_scale": 3.0}}, ()),
        ({"field": {"kernel": "matern32"}}, ()),
        ({"belief": {"signal_std": [4.0, 5.0], "noise_std": [0.1, 0.2, 0.3]}}, tuple(range(6, 12))),
    ],
)
def test_weight_of_the_true_length_scale(sections, indices) -> None:
    config = scenario(**sections).to_mapping()
    assert metrics.true_weight_indices(config) == indices
    weights = [0.5**k for k in range(12)]
    record = made("a", 0, [1.0], config=config, weights=[weights])
    expected = sum(weights[i] for i in indices) if indices else None
    assert METRICS["true_weight"].of(record, 1) == expected


def test_one_length_scale_for_all_features_is_the_same_as_one_for_each() -> None:
    config = scenario(GRID, belief={"length_scales": [[10, 20], [20, 20], 10]}).to_mapping()
    assert metrics.true_weight_indices(config) == (1,)


def test_the_list_of_metrics_is_the_one_in_the_docstring() -> None:
    text = metrics.__doc__ or ""
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert listed == list(METRICS)


def test_unknown_metric() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'rmspe'"):
        summary([], "rmpse", [1])


def test_a_table_of_one_seed_promises_no_standard_error_and_has_no_minus_nothing() -> None:
    table = summary([made("a", 0, [-0.001, 5.0]), made("b", 0, [1.25, 1.5])], "rmspe", [1, 2])
    markdown = to_markdown(table).splitlines()
    assert markdown[2] == "one seed, so that there is no standard error"
    assert "±" not in "".join(markdown)
    assert markdown[6].startswith("| a | 0.0 | 5.0 |")
    assert to_text(table)[0].endswith("one seed, so that there is no standard error")


def test_as_markdown_text_and_csv() -> None:
    records = [made("a", s, [10.0 + s, 5.0]) for s in range(4)] + [made("b|c", 0, [1.25])]
    table = summary(records, "rmspe", [1, 2])
    markdown = to_markdown(table).splitlines()
    assert markdown[:3] == ["## RMSPE [K]", "", "mean ± standard error over n seeds"]
    assert markdown[4] == "| policy | 1 readings | 2 readings | n |"
    assert markdown[6] == "| a | 11.50 ± 0.65 | 5.00 ± 0.00 | 4 |"
    assert markdown[7] == "| b\\|c | 1.25 (1) | – (0) | in brackets |"
    text = to_text(table)
    assert text[1].split() == ["policy", "1", "readings", "2", "readings", "n"]
    assert len({line.rstrip().find("5.00") for line in text[2:3]}) == 1
    rows = list(csv.DictReader(io.StringIO(to_csv([table]))))
    assert [(r["policy"], r["readings"], r["count"]) for r in rows] == [
        ("a", "1", "4"),
        ("a", "2", "4"),
        ("b|c", "1", "1"),
    ]
    assert float(rows[0]["mean"]) == 11.5
    assert float(rows[0]["standard_error"]) == pytest.approx(math.sqrt(5 / 3) / 2)
    assert rows[2]["standard_error"] == ""


def test_an_experiment_without_any_record_yet() -> None:
    table = summary([], "rmspe", [1])
    assert table.rows == ()
    assert "RMSPE" in to_markdown(table)
    assert to_csv([table]).count("\n") == 1
