"""`gp-active-sensing learn`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from gp_active_sensing.cli import cli
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.topology import build_topology
from tests.cases import for_each

needs_gpytorch = pytest.mark.heavy("learn")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["learn", *arguments])


@pytest.fixture
def speeds(tmp_path: Path) -> Path:
    """A hundred readings of the town, faster in the west."""
    town = build_topology(load_scenario("town").map)
    rows = [
        f"{town.names[k]},{60.0 - 0.01 * town.positions[k, 0] + k % 3}"
        for k in range(0, town.n, town.n // 100)
    ]
    path = tmp_path / "speeds.csv"
    path.write_text("\n".join(["id,speed", *rows]), encoding="utf-8")
    return path


@needs_gpytorch
def test_a_table_and_a_map(speeds: Path, tmp_path: Path) -> None:
    out = tmp_path / "belief.yaml"
    done = call(str(speeds), "--map", "town", "--set", "belief.kernel=matern32", "--out", str(out))
    assert done.exit_code == 0, done.output
    text = out.read_text(encoding="utf-8")
    assert text in done.stdout
    assert "# kernel: matern32 of x, y" in text
    assert "starts agree" in text
    assert "each place's own: not known: no reading is of a place that was read before" in text
    section = yaml.safe_load(text)
    assert len(section["belief"]["length_scales"]) == 7
    # What it wrote is a section that a scenario takes.
    learned = load_scenario("town", overrides=[f"belief={json.dumps(section['belief'])}"])
    assert learned.belief.kernel == "matern32"


@needs_gpytorch
def test_json_and_the_paper_s_candidates(speeds: Path) -> None:
    done = call(
        str(speeds), "--scenario", "town", "--set", "belief.kernel=graph_matern",
        "--lambda", "paper", "--json", "--starts", "2", "--subset", "60",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    scales = found["belief"]["length_scales"]
    assert [round(s / scales[0]) for s in scales] == [1, 4, 6, 8, 10, 12, 14]
    assert found["places"] == 60
    assert len(found["log_posterior"]) == 2


@needs_gpytorch
def test_a_scenario_of_its_own() -> None:
    done = call("town", "--subset", "60", "--starts", "1", "--set", "map.anchor=1")
    assert done.exit_code == 0, done.output
    assert "scenario 'town': 60 readings of 60 places" in done.stdout
    assert "of map 'town', with map.anchor=1\n" in done.stdout


@needs_gpytorch
def test_a_sensor_that_is_known_and_places_read_again(speeds: Path) -> None:
    call_of = (str(speeds), "--map", "town", "--set", "belief.kernel=matern32", "--starts", "1")
    done = call(*call_of, "--noise", "0.25")
    assert done.exit_code == 0, done.output
    assert "noise 0.25 (given), each place's own " in done.stdout
    section = yaml.safe_load(done.stdout)["belief"]
    assert section["noise_std"] == [0.25]
    assert section["place_std"][-1] > 0.0
    with speeds.open("a", encoding="utf-8") as stream:
        rows = speeds.read_text(encoding="utf-8").splitlines()[1:31]
        pairs = [row.split(",") for row in rows]
        stream.write("".join(f"\n{name},{float(v) + 0.1}" for name, v in pairs))
    done = call(*call_of, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["noise_std"] == pytest.approx(0.1 / 2.0**0.5, rel=0.3)
    assert found["place_std"] > 3.0 * found["noise_std"]
    assert found["place_gain"] > 3.0
    assert found["belief"]["place_std"] == [pytest.approx(found["place_std"], rel=0.01)]
    assert len(found["errors"]) == 4


def test_mistakes_are_one_clear_line(speeds: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("id,value\n-6,1\n", encoding="utf-8")
    for arguments, message in (
        ((str(speeds),), "say whose map its places are of, with --scenario or with --map"),
        ((str(few), "--map", "town"), "expected readings of 8 places or more"),
        ((str(speeds), "--map", "twon"), "Did you mean 'town'"),
        (("twon",), "Did you mean 'town'"),
        (("town_sample",), "is a bag: learn length-scales from the run"),
        ((str(speeds), "--map", "town", "--value", "sped"), "Did you mean 'speed'"),
        ((str(speeds), "--map", "town", "--set", "belief.kernel=matern33"), "Did you mean"),
    ):
        done = call(*arguments)
        assert done.exit_code == 1
        assert message in done.stderr
        assert "Traceback" not in done.output


@for_each("more", [(), ("--kernels", "SE")])
def test_what_is_no_factor_and_what_is_not_used(
    speeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for word in ("nan", "inf", "0"):
        done = call(str(speeds), "--map", "town", "--scale", word, *more)
        assert done.exit_code == 2
        assert f"'--scale': expected a finite number other than 0, got {word}" in done.stderr
    for word in ("nan", "-1"):
        done = call(str(speeds), "--map", "town", "--snap", word, *more)
        assert done.exit_code == 2
        assert f"'--snap': expected a finite number of metres, 0 or more, got {word}" in done.stderr
    for given in (("--value", "wind"), ("--place", "id"), ("--snap", "1"), ("--scale", "2")):
        done = call("town", *given, *more)
        assert done.exit_code == 1
        assert f"{given[0]} is for a table" in done.stderr
    assert not list(tmp_path.iterdir())
