"""Tables of Experiment 2 against numbers worked out by hand: a field counts once."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MODULES = ("road_tables", "effective_number")

if not BENCHMARKS.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("road_tables")
    for name in MODULES:
        sys.modules.pop(name, None)


def row(
    policy: str, field: int, start: int, rmspe: Sequence[float], went: Sequence[int] = (1, 2)
) -> dict[str, Any]:
    return {
        "policy": policy,
        "field": field,
        "start": start,
        "marks": [{"rmspe": value} for value in rmspe],
        "went": list(went),
    }


def pair(field: int, start: int, gain: float, went: Sequence[int] = (1, 2)) -> list[dict[str, Any]]:
    return [row("ie", field, start, [10.0]), row("bal", field, start, [10.0 + gain], went)]


def test_starts_are_averaged_before_fields_are(tables: Any) -> None:
    rows = [*pair(0, 0, -1.0), *pair(0, 1, -3.0), *pair(1, 0, 4.0)]
    found = tables.Missions(rows, [0, 1], [2])
    assert found.differences("bal", "rmspe", 0) == {0: -2.0, 1: 4.0}
    # Means -2 and 4: mean 1, sd = 6 / sqrt(2), error = 3; three missions would have had 0 ± 2.1.
    assert found.over_fields("bal", "rmspe", 0) == pytest.approx((1.0, 3.0, 2))


def test_a_mission_without_its_partner_is_no_pair(tables: Any) -> None:
    rows = [*pair(0, 0, -1.0), row("bal", 1, 0, [2.0]), row("ie", 2, 0, [2.0])]
    found = tables.Missions(rows, [0, 1, 2], [2])
    assert found.fields("bal") == [0]
    mean, error, count = found.over_fields("bal", "rmspe", 0)
    assert (mean, count) == (-1.0, 1)
    assert math.isnan(error)


def test_a_mission_that_ended_early_is_not_counted(tables: Any) -> None:
    rows = [*pair(0, 0, -1.0), row("ie", 1, 0, [5.0]), row("bal", 1, 0, [])]
    assert tables.Missions(rows, [0, 1], [2]).fields("bal") == [0]


def test_fields_in_a_row_count_as_a_block(tables: Any) -> None:
    gains = [-1.0, -3.0, 4.0, 6.0]
    rows = [one for field, gain in enumerate(gains) for one in pair(field, 0, gain)]
    found = tables.Missions(rows, [0, 0, 1, 1], [2])
    # Blocks have -2 and 5: mean 1.5, error = 7 / sqrt(2) / sqrt(2).
    assert found.over_blocks("bal", "rmspe", 0) == pytest.approx((1.5, 3.5, 2))


def test_one_block_has_no_standard_error(tables: Any) -> None:
    rows = [*pair(0, 0, -1.0), *pair(1, 0, 1.0)]
    assert math.isnan(tables.Missions(rows, [0, 0], [2]).over_blocks("bal", "rmspe", 0)[1])


def test_what_starts_have_in_common_is_that_of_the_differences(tables: Any) -> None:
    # 0, 2 on one field and 3, 5 on the other, as in the test of the estimator.
    gains = {(0, 0): 0.0, (0, 1): 2.0, (1, 0): 3.0, (1, 1): 5.0}
    rows = [one for key, gain in gains.items() for one in pair(*key, gain)]
    found = tables.Missions(rows, [0, 1], [2]).nested("bal", "rmspe", 0)
    assert found.value == pytest.approx(3.5 / 5.5)


def test_fields_with_a_single_start_say_nothing_of_that(tables: Any) -> None:
    rows = [*pair(0, 0, 1.0), *pair(1, 0, 2.0)]
    found = tables.Missions(rows, [0, 1], [2])
    assert found.nested("bal", "rmspe", 0) is None
    assert found.in_common("bal", 2) is None
    assert tables.worth_rows("x", found, 10) == []


def test_a_policy_that_goes_where_the_reference_goes_says_nothing_of_that(tables: Any) -> None:
    rows = [
        one for field in (0, 1) for start in (0, 1) for one in pair(field, start, 1e-13 * start)
    ]
    assert tables.Missions(rows, [0, 1], [2]).nested("bal", "rmspe", 0) is None


def test_places_in_common_are_those_on_one_field(tables: Any) -> None:
    rows = [
        *pair(0, 0, 1.0, [1, 2, 3]),
        *pair(0, 1, 2.0, [2, 1, 9]),
        *pair(1, 0, 0.0, [5, 6, 7]),
        *pair(1, 1, 1.0, [7, 5, 1]),
    ]
    found = tables.Missions(rows, [0, 1], [2])
    assert found.in_common("bal", 2) == pytest.approx((1.0 + 0.5) / 2)


def test_rows_say_fields_units_and_missions(tables: Any) -> None:
    rows = [*pair(0, 0, -1.0), *pair(0, 1, -3.0), *pair(1, 0, 4.0)]
    found = tables.Missions(rows, [0, 0], [2])
    assert tables.error_rows("x", found, blocks=False) == [
        ["x", "ie: RMSPE", "10.00 ± 0.00", "2 / 2 / 3"],
        ["x", "bal − ie", "1.00 ± 3.00", "2 / 2 / 3"],
    ]
    assert tables.error_rows("x", found, blocks=True)[1] == ["x", "bal − ie", "1.00", "2 / 1 / 3"]


def test_two_policies_are_compared_on_the_fields_that_both_have(tables: Any) -> None:
    rows = [*pair(0, 0, -1.0), *pair(0, 1, -3.0), *pair(1, 0, 4.0), *pair(2, 0, 0.0)]
    rows += [row("apgd", 0, 0, [8.0]), row("apgd", 0, 1, [8.0]), row("apgd", 1, 0, [9.0])]
    found = tables.Missions(rows, [0, 0, 1], [2])
    # 9 - 8 and 7 - 8 on the first field, 14 - 9 on the second: means 0 and 5.
    pairs = [("bal", "apgd"), ("tour", "bal")]
    assert tables.pair_rows("x", found, pairs, blocks=False) == [
        ["x", "bal − apgd", "2.50 ± 2.50", "2 / 2 / 3"]
    ]
    assert tables.pair_rows("x", found, pairs, blocks=True) == [
        ["x", "bal − apgd", "2.50", "2 / 1 / 3"]
    ]


def test_places_in_common_with_the_reference_are_from_the_same_start(tables: Any) -> None:
    rows = [*pair(0, 0, 1.0, [1, 2, 3]), *pair(1, 0, 1.0, [1, 7, 3]), row("ie", 2, 0, [1.0])]
    found = tables.Missions(rows, [0, 1, 2], [2])
    # `ie` goes 1, 2; so does the first of `bal`, the second has one of them.
    assert tables.shared_rows("x", found, 10) == [["x", "bal", "75 % (20 %)"]]


def test_fields_are_alike_where_they_have_values(tables: Any) -> None:
    nan = math.nan
    values = np.array([[1.0, 2.0, 3.0, nan], [2.0, 4.0, 6.0, 0.0], [3.0, 2.0, 1.0, 5.0]])
    # 1 between the first two, -1 between the first and the last, -0.69 between the others.
    mean, least = tables.alike(values)
    assert least == pytest.approx(-1.0)
    third = np.corrcoef(values[1], values[2])[0, 1]
    assert mean == pytest.approx((1.0 - 1.0 + third) / 3.0)
    assert tables.alike(values[:1]) is None


def test_networks_count_once_each(tables: Any) -> None:
    one = tables.Missions([*pair(0, 0, -1.0), *pair(1, 0, -1.0)], [0, 0], [2])
    two = tables.Missions(pair(0, 0, 1.0), [0], [2])
    # -10 % and +10 %: mean 0, error 10.
    assert tables.network_rows({"a": one, "b": two}) == [["bal", "0.0 ± 10.0 (-10.0, 10.0)"]]


def test_a_policy_that_a_network_lacks_has_no_row(tables: Any) -> None:
    one = tables.Missions([*pair(0, 0, 1.0), row("spread", 0, 0, [3.0])], [0], [2])
    two = tables.Missions(pair(0, 0, 1.0), [0], [2])
    assert [r[0] for r in tables.network_rows({"a": one, "b": two})] == ["bal"]


def test_what_is_crossed_again_or_has_no_value_is_no_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gp_active_sensing.belief import BeliefConfig
    from gp_active_sensing.topology import MapConfig, build_topology

    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    try:
        road_runs, fields = (importlib.import_module(m) for m in ("road_runs", "road_fields"))
        grid = build_topology(MapConfig(kind="grid", columns=7, rows=1, spacing=10.0))
        values = np.array([[1.0, 2.0, np.nan, np.nan, 3.0, 1.0, 2.0]])
        belief = BeliefConfig(
            kernel="se", length_scales=(10.0,), signal_std=(1.0,), noise_std=(0.1,)
        )
        made = fields.RoadFields("x", "m", grid, values, 0.0, belief, (0,), (2, 4))
        monkeypatch.setattr(road_runs, "FIELDS", {"x": lambda: made})
        for policy in ("ie", "tour", "bal N'=5"):
            found = road_runs.play(road_runs.Task("x", 0, 0, policy))
            assert len(found["went"]) == 4, policy
            assert len(set(found["went"])) == 4, "each place once"
            assert not {2, 3} & set(found["went"]), "places without a value are driven, not read"
            assert [mark["metres"] for mark in found["marks"]][1] >= 30.0
    finally:
        for name in set(sys.modules) - before:
            if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def test_all_pairs_have_missions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    try:
        bench, runs = (importlib.import_module(m) for m in ("bench_roads", "road_runs"))
        wanted = list(bench.tasks())
        assert {task.policy for task in wanted} == set(runs.POLICIES)
        assert len({task.key for task in wanted}) == len(wanted)
        for pair in bench.PAIRS:
            for name in ("San Jose", bench.DRAWS, bench.CLEAR):
                assert set(pair) <= {task.policy for task in wanted if task.fields == name}
        assert [task.policy for task in wanted[-40:]] == ["tour"] * 40, "the slowest ones at last"
    finally:
        for name in set(sys.modules) - before:
            if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def test_what_missions_cost_is_averaged_over_fields(tables: Any) -> None:
    def driven(field: int, start: int, metres: float, seconds: float) -> dict[str, Any]:
        mark = {"rmspe": 1.0, "metres": metres, "plan": seconds}
        return {**row("ie", field, start, [1.0]), "marks": [mark]}

    rows = [driven(0, 0, 1000.0, 1.0), driven(0, 1, 3000.0, 3.0), driven(1, 0, 6000.0, 6.0)]
    (found,) = tables.cost_rows("here", tables.Missions(rows, [0, 1], [2]))
    # Fields have 2 and 6 km: mean 4, sd = 4 / sqrt(2), error = 2.
    assert found == ["here", "ie", "4.0 ± 2.0", "4.00 ± 2.00", 2]
