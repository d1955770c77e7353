"""Command `gp-active-sensing learn`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from gp_active_sensing.cli import cli
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.topology import build_topology

needs_gpytorch = pytest.mark.heavy("learn")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["learn", *arguments])


@pytest.fixture
def speeds(tmp_path: Path) -> Path:
    """Write a hundred speed readings of the town, faster in the west."""
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
def test_a_sensor_that_is_known_and_places_read_again(speeds: Path) -> None:
    call_of = (str(speeds), "--map", "town", "--set", "belief.kernel=matern32", "--starts", "1")
    done = call(*call_of, "--noise", "0.25")
    assert done.exit_code == 0, done.output
    assert "noise 0.25 (given), each place's own " in done.stdout
    section = yaml.safe_load(done.stdout)["belief"]
    assert section["noise_std"] == [0.25]
    assert section["place_std"][-1] > 0.0
    pairs = [row.split(",") for row in speeds.read_text(encoding="utf-8").splitlines()[1:31]]
    with speeds.open("a", encoding="utf-8") as stream:
        stream.write("".join(f"\n{name},{float(v) + 0.1}" for name, v in pairs))
    done = call(*call_of, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["noise_std"] == pytest.approx(0.1 / 2.0**0.5, rel=0.3)
    assert found["place_std"] > 3.0 * found["noise_std"]
    assert found["place_gain"] > 3.0
    assert found["belief"]["place_std"] == [pytest.approx(found["place_std"], rel=0.01)]


def test_mistakes_are_one_clear_line(speeds: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("id,value\n-6,1\n", encoding="utf-8")
    for arguments, code, message in (
        ((str(speeds),), 1, "say whose map its places are of"),
        ((str(few), "--map", "town"), 1, "expected readings of 8 places or more"),
        (("twon",), 1, "Did you mean 'town'"),
        (("town_sample",), 1, "is a bag: learn length-scales from the run"),
        ((str(speeds), "--map", "town", "--value", "sped"), 1, "Did you mean 'speed'"),
        ((str(speeds), "--map", "town", "--set", "belief.kernel=matern33"), 1, "Did you mean"),
        ((str(speeds), "--map", "town", "--scale", "nan"), 2, "'--scale'"),
        ((str(speeds), "--map", "town", "--scale", "0", "--kernels", "SE"), 2, "'--scale'"),
        ((str(speeds), "--map", "town", "--snap", "-1"), 2, "'--snap'"),
        (("town", "--place", "id"), 1, "--place is for a table"),
        (("town", "--scale", "2", "--kernels", "SE"), 1, "--scale is for a table"),
    ):
        done = call(*arguments)
        assert done.exit_code == code, (arguments, done.output)
        assert message in done.stderr
        assert "Traceback" not in done.output
