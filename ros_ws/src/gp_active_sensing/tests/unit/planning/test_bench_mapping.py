"""The arena of mapping: the same field, start, noise and metres for everyone; rows are kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.chooser import CHOOSER

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"

if not BENCHMARKS.is_dir():
    pytest.skip("the benchmarks are not installed", allow_module_level=True)

PLANE = ("draws/plane", "moves")


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delenv("GPAS_DATA", raising=False)
    monkeypatch.delenv("GPAS_KEPT", raising=False)
    monkeypatch.delenv("GPAS_ADAPTERS", raising=False)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def task(policy: dict[str, Any], **changed: Any) -> Any:
    from mapping_runs import Task

    fields: dict[str, Any] = {
        "name": PLANE[0],
        "mode": PLANE[1],
        "moves": 12,
        "number": 0,
        "label": policy["name"],
        "policy": json.dumps(policy),
        "expansions": 5,
    }
    return Task(**(fields | changed))


def test_without_the_data_there_are_the_shipped_fields_and_draws() -> None:
    from mapping_fields import arenas

    found = arenas(3, 5)
    assert {name for name, _ in found} == {
        *("sim/town", "sim/terrain", "sim/lake", "sim/bloom", "sim/warehouse"),
        *("draws/plane", "draws/island", "draws/town"),
    }
    assert ("sim/town", "free") not in found
    assert found["sim/lake", "free"].draws == 3
    assert found[PLANE].draws == 5


@pytest.mark.parametrize("name", ["draws/plane", "draws/island", "draws/town"])
def test_draws_differ_from_number_to_number_and_not_from_call_to_call(name: str) -> None:
    from mapping_fields import arenas

    arena = arenas(1, 2)[name, "moves"]
    first, again, other = arena.field(0), arena.field(0), arena.field(1)
    np.testing.assert_array_equal(first.values, again.values)
    assert not np.allclose(first.values, other.values)
    assert first.topology is other.topology
    assert len(first.known) == first.topology.n


def test_free_choice_is_on_the_same_places() -> None:
    from mapping_fields import arenas, step_of

    found = arenas(1, 1)
    bound, free = (found["draws/island", mode].field(0) for mode in ("moves", "free"))
    assert free.topology.free
    np.testing.assert_array_equal(bound.topology.positions, free.topology.positions)
    np.testing.assert_array_equal(bound.values, free.values)
    assert step_of(bound.topology) == step_of(free.topology) == pytest.approx(1.0)
    assert 60.0 < step_of(found["draws/town", "moves"].field(0).topology) < 200.0


def test_everyone_starts_alike_and_drives_no_farther() -> None:
    from mapping_runs import play

    rows = [play(task({"name": name})) for name in ("random", "ie", "integrated_variance")]
    assert len({row["went"][0] for row in rows}) == 1
    assert len({row["spread"] for row in rows}) == 1
    for row in rows:
        assert 0.0 < row["metres"] <= 12.0 + 1e-9
        assert 1 < row["readings"] <= len(row["went"])
        assert 0.0 < row["rmse"] < 2.0 * row["spread"]
        assert 0.0 <= row["covered_50"] <= row["covered_90"] <= row["covered_95"] <= 1.0
        assert row["peak_mb"] > 1.0
    again = play(task({"name": "random"}))
    assert again["went"] == rows[0]["went"]
    assert again["rmse"] == rows[0]["rmse"]


def test_an_external_program_takes_part() -> None:
    from mapping_runs import play

    policy = {"name": "external", "command": [sys.executable, "-S", str(CHOOSER)]}
    row = play(task(policy, label="mine"))
    assert row["failed"] == 0
    assert row["decisions"] > 3
    bad = play(task({**policy, "command": [*policy["command"], "garbage"]}, label="bad"))
    assert bad["failed"] == bad["decisions"] > 0


def test_rows_are_kept_and_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bench_mapping

    monkeypatch.setenv("GPAS_KEPT", str(tmp_path))
    asked = [task({"name": "random"}, number=number) for number in (0, 1)]
    rows, failed = bench_mapping.gather(asked[:1], 1)
    assert not failed
    assert len(rows) == 1
    file = tmp_path / "mapping.jsonl"
    file.write_text(file.read_text() + '{"key": "cut sh')
    monkeypatch.setattr(bench_mapping, "play", lambda task: {"key": task.key, "rmse": 7.0})
    rows, _ = bench_mapping.gather(asked, 1)
    assert rows[0]["rmse"] != 7.0
    assert rows[1]["rmse"] == 7.0


def test_a_line_that_was_cut_short_does_not_swallow_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bench_mapping
    import kept_rows

    monkeypatch.setenv("GPAS_KEPT", str(tmp_path))
    file = tmp_path / "mapping.jsonl"
    file.write_text('{"key": "cut sh')
    monkeypatch.setattr(bench_mapping, "play", lambda task: {"key": task.key, "rmse": 7.0})
    asked = [task({"name": "random"})]
    bench_mapping.gather(asked, 1)
    assert asked[0].key in kept_rows.read(file)


def test_what_is_not_there_is_skipped_and_said() -> None:
    from adapters import environments
    from bench_mapping import able

    known = {
        "ie": {"name": "ie"},
        "not yet": {"name": "no_such_policy"},
        "other keys": {"name": "ie", "objekt": 3},
        **environments(),
    }
    usable, skipped = able(known)
    assert list(usable) == ["ie"]
    assert "unknown policy 'no_such_policy'" in skipped["not yet"]
    assert "objekt" in skipped["other keys"]
    assert "GPAS_ADAPTERS names no folder" in skipped["BoTorch qNIPV"]


def test_a_report_has_paired_differences_and_what_is_missing(tmp_path: Path) -> None:
    import bench_mapping

    own = tmp_path / "own.yaml"
    command = json.dumps([sys.executable, "-S", str(CHOOSER)])
    own.write_text(f"mine: {{name: external, command: {command}}}\ngone: {{name: nothing}}\n")
    found = bench_mapping.run(
        only=["draws/plane/moves"],
        policies="ie,random,mine,gone",
        own=own,
        starts=2,
        budgets="6,9",
        reference="random",
    )
    text = found.markdown()
    assert text.count("## Mapping: draws/plane, moves") == 2
    assert "| gone | everywhere | unknown policy 'nothing'" in text
    over = next(line for line in text.splitlines() if line.startswith("| draws/plane | moves | 6"))
    assert over.count("±") == 3
    assert "nan" not in text.lower()


def test_a_decision_of_bal_ends_where_any_place_may_be_next() -> None:
    from bench_mapping import task_of
    from mapping_fields import arenas

    found = arenas(1, 1)
    bound, free = (found["draws/plane", mode] for mode in ("moves", "free"))
    far, near = (task_of(one, 60, 0, "bal", {"name": "bal"}) for one in (bound, free))
    assert (far.expansions, json.loads(far.policy)["horizon"]) == (500, 3)
    assert (near.expansions, json.loads(near.policy)["horizon"]) == (1, 2)
    assert task_of(free, 60, 0, "mine", {"name": "bal", "horizon": 4}).policy.count("4") == 1
    assert task_of(free, 60, 0, "tour", {"name": "tour"}).expansions == 500
    assert far.key != task_of(bound, 60, 1, "bal", {"name": "bal"}).key


def test_paired_differences() -> None:
    from mapping_fields import arenas
    from mapping_tables import Results, report

    def row(label: str, number: int, rmse: float) -> dict[str, Any]:
        where = {"name": PLANE[0], "mode": PLANE[1], "moves": 6}
        return {**where, "label": label, "number": number, "rmse": rmse, "step": 1.0}

    rows = [row("a", i, 1.0 + i) for i in range(4)] + [row("b", i, 1.5 + i) for i in range(3)]
    results = Results(rows, ["a", "b"], [arenas(1, 1)[PLANE]], [6], "a")
    cell = (*PLANE, 6)
    assert results.difference(cell, "b", "a") == (pytest.approx(0.5), pytest.approx(0.0))
    assert results.values(cell, "a", "rmse").size == 4
    text = report(results, {}, {}, 0.0).markdown()
    assert "| b | everywhere | 3 of 4 draws |" in text
    assert results.difference(cell, "a", "nobody") != results.difference(cell, "b", "a")


def test_a_policy_is_held_against_all_evenly_spaced_routes_not_only_the_best() -> None:
    from mapping_fields import arenas
    from mapping_runs import EVENLY
    from mapping_tables import Results, hindsight

    where = {"name": PLANE[0], "mode": PLANE[1], "moves": 6}
    even = [[2.0, 1.0, 3.0, 2.0], [4.0, 2.0, 6.0, 4.0]]
    rows: list[dict[str, Any]] = [
        {**where, "label": EVENLY, "number": i, "rmse": min(e), "errors": e}
        for i, e in enumerate(even)
    ]
    rows += [
        {**where, "label": "a", "number": i, "rmse": rmse} for i, rmse in enumerate((1.5, 3.0, 9.0))
    ]
    results = Results(rows, ["a", "b", EVENLY], [arenas(1, 1)[PLANE]], [6], "a")
    (line,) = hindsight(results, "moves", 6)  # the draw without such routes is left out
    assert line == ("moves", 6, "a", 1, "75", "-25.0", "-25.0", "+50.0")
    assert hindsight(results, "free", 6) == []


def test_what_is_asked_for_has_to_be_there() -> None:
    import bench_mapping

    from gp_active_sensing.errors import ConfigError

    with pytest.raises(ConfigError, match="nothing is called moon"):
        bench_mapping.run(only=["moon"])
    with pytest.raises(ConfigError, match="unknown fly"):
        bench_mapping.run(policies="ie,fly")


def test_the_best_evenly_spaced_route_is_better_than_the_others() -> None:
    import mapping_runs

    asked = task({"name": mapping_runs.EVENLY}, moves=60)
    field = mapping_runs.arenas(1, 1)[PLANE].field(0)
    routes = mapping_runs.evenly_spaced(asked, field, 1.0)
    assert 3 < len(routes) <= mapping_runs.MOST_ROUTES
    assert len({laid.trip.path for laid in routes if laid.trip}) == len(routes)
    best = mapping_runs.play(asked)
    assert best["metres"] <= 60.0 + 1e-9
    assert len(best["errors"]) == len(routes)
    assert best["rmse"] == min(best["errors"])
    first = best["densest"]
    assert first["rmse"] == best["errors"][0]
    assert [first["went"][0], *routes[0].trip.path] == first["went"][: len(routes[0].trip.path) + 1]
    assert best["went"][0] == mapping_runs.play(task({"name": "random"}))["went"][0]
    one = mapping_runs.play(task({"name": "lawnmower"}, moves=60))
    assert best["rmse"] <= one["rmse"] + 1e-9
    assert {"spacing", "inset", "direction", "corner"} <= set(best["rows"])


def test_what_could_be_chosen_before_has_a_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bench_mapping
    from mapping_runs import DENSEST, EVENLY

    monkeypatch.setenv("GPAS_KEPT", str(tmp_path))
    found = bench_mapping.run(
        only=["draws/plane/moves"],
        policies=f"random,{EVENLY}",
        starts=1,
        budgets="40",
        reference=EVENLY,
    )
    lines = [line for line in found.markdown().splitlines() if line.startswith(f"| {DENSEST} |")]
    assert len(lines) == 2  # over the data sets, and of the only one
    assert all("-" not in line.split("|")[2] for line in lines)  # never better than the best


def test_rows_have_no_meaning_on_roads() -> None:
    import mapping_runs

    from gp_active_sensing.errors import ActiveSensingError

    asked = task({"name": mapping_runs.EVENLY}, name="sim/town")
    with pytest.raises(ActiveSensingError, match="no rows on roads"):
        mapping_runs.play(asked)


@pytest.mark.parametrize("program", ["nipv.py", "sgp.py"])
def test_adapters_are_programs_that_import_nothing_of_this_project(program: str) -> None:
    source = (BENCHMARKS / "adapters" / program).read_text("utf-8")
    compile(source, program, "exec")
    assert "gp_active_sensing" not in source


def test_adapters_are_found_where_their_environment_is(tmp_path: Path) -> None:
    from adapters import ADAPTERS, environments

    python = tmp_path / "sgptools" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    found = environments(tmp_path)
    assert set(found) == set(ADAPTERS)
    assert found["sgptools"]["command"][0] == str(python)
    assert Path(found["sgptools"]["command"][1]).is_file()
    assert "there is no" in found["BoTorch qNIPV"]["missing"]


def test_a_picture_shows_the_map_that_a_way_led_to(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra [experiments] is not installed")
    from mapping_fields import arenas
    from mapping_pictures import believed, draw
    from mapping_runs import play

    rows = [play(task({"name": name})) for name in ("random", "ie")]
    field = arenas(1, 1)[PLANE].field(0)
    expected, read = believed(rows[0], field)
    assert int(read.sum()) == rows[0]["readings"]
    rmse = float(np.sqrt(np.mean((expected - field.values) ** 2)))
    assert rmse == pytest.approx(rows[0]["rmse"], rel=1e-9)
    (file,) = draw([*rows, {**rows[0], "number": 1}], tmp_path / "pictures")
    assert file.name == "draws_plane_moves_12.png"
    assert 1000 < file.stat().st_size < 200_000
