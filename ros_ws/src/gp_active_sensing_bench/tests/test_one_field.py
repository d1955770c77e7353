"""Seeds that all have the same field: what tables and pages say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_support.small import made, small
from gp_active_sensing_bench import run_experiment, write_outputs
from gp_active_sensing_bench.one_field import one_field_notes, shared_places
from gp_active_sensing_bench.plan import ExperimentConfig
from tests.unit.sim.scenarios import mapping as scenario_mapping

FORMULA = {"kind": "formula", "formula": "sin(x)", "unit": "K"}
CONFIG = ExperimentConfig(scenario="line")


def record(seed: int, places: list[int], **more: Any) -> dict[str, Any]:
    return made(
        seed=seed,
        rmspe=[1.0] * len(places),
        location=places,
        config={"field": {"kind": more.pop("kind", "table"), "unit": "K"}},
        **more,
    )


def test_the_sentence_has_the_share_of_places_in_common() -> None:
    records = [record(0, [1, 2, 3, 4]), record(1, [3, 4, 5, 6])]
    (note,) = one_field_notes(CONFIG, records)
    assert note == (
        "default: all seeds have the same field. Standard errors are over starts and noise on this "
        "one field and say nothing of other fields; two missions of a policy have 50 % of their "
        "places in common."
    )


def test_policies_and_budgets_are_never_compared_with_one_another() -> None:
    records = [
        *(record(seed, [seed], policy="a") for seed in (0, 1)),
        *(record(seed, [5, 6], policy="b") for seed in (0, 1)),
        *(record(seed, [7], policy="c", budget=seed + 1) for seed in (0, 1)),
    ]
    (note,) = one_field_notes(CONFIG, records)
    assert "have 0 to 100 % of their places" in note


@pytest.mark.parametrize("kind", ["gp", "sumo"])
def test_fields_that_follow_the_seed_need_no_sentence(kind: str) -> None:
    assert not list(one_field_notes(CONFIG, [record(s, [s, s + 1], kind=kind) for s in (0, 1)]))


def test_a_single_seed_needs_no_sentence() -> None:
    records = [record(0, [1, 2], policy="a"), record(0, [1, 3], policy="b")]
    assert not list(one_field_notes(CONFIG, records))


def test_maps_or_fields_that_get_the_seed_need_no_sentence() -> None:
    config = ExperimentConfig(scenario="line", seeded=("map.seed",))
    assert not list(one_field_notes(config, [record(s, [s]) for s in (0, 1)]))


def test_a_sentence_for_each_configuration() -> None:
    records = [record(s, [s], configuration=c) for c in ("x", "y") for s in (0, 1)]
    assert [n.partition(":")[0] for n in one_field_notes(CONFIG, records)] == ["x", "y"]


def test_missions_without_readings_share_nothing_that_could_be_said() -> None:
    records = [record(s, [s]) | {"stages": []} for s in (0, 1)]
    (note,) = one_field_notes(CONFIG, records)
    assert note.endswith("say nothing of other fields.")


def test_it_stands_in_the_tables_and_on_the_page(tmp_path: Path) -> None:
    scenario = {**scenario_mapping(), "field": FORMULA}
    experiment = small(scenario=scenario, budgets=[2], metrics=["rmspe"])
    outputs = write_outputs(tmp_path, run_experiment(experiment, tmp_path, jobs=1))
    for path in (outputs.tables, outputs.page):
        assert "default: all seeds have the same field." in path.read_text(encoding="utf-8")


def test_places_in_common() -> None:
    assert shared_places([[1, 2, 3, 4], [3, 4, 5, 6]]) == 0.5
    assert shared_places([[1, 2], [1, 2], [3, 4]]) == pytest.approx(1 / 3)
    assert shared_places([[1, 2, 3, 4], [4]]) == 1.0  # all that the shorter one has


def test_random_choices_share_as_many_as_chance_has() -> None:
    rng = np.random.default_rng(5)
    ways = [rng.choice(900, 240, replace=False).tolist() for _ in range(60)]
    assert shared_places(ways) == pytest.approx(240 / 900, abs=0.005)


@pytest.mark.parametrize("ways", [[[1, 2]], [[1, 2], []]])
def test_missions_without_places_are_refused(ways: Any) -> None:
    with pytest.raises(ValueError, match="at least two missions with places"):
        shared_places(ways)
