"""`gp-active-sensing learn --kernels`, as a user types it: from a log to a model and its use."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from gp_active_sensing.kernel_model import read_model
from gp_active_sensing_learning.data.dataset import ReadOptions
from gp_active_sensing_learning.data.table import read_table
from learning_support.learn_kernels import QUICK, call, learned, log

__all__ = ["log"]  # a fixture
pytestmark = pytest.mark.heavy("learn")


def test_from_a_log_to_a_model(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "temp.npz"
    done = learned(log, out)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == f"60 rows of {log}: temp of x, hours; 3 kernels"
    assert any("kernels done" in line and "step 30/30, ELBO" in line for line in lines)
    assert f"  model    {out}" in lines
    model = read_model(out)
    assert set(model.names) == {"SE", "LIN", "PER"}
    assert model.rows == 60
    assert model.input_names == ("x", "hours")
    assert model.settings["recipe"]["kind"] == "table"
    assert model.settings["expressions"] == ["SE", "LIN", "PER"]
    assert model.settings["vbks"]["inducing"] == 8
    rows = read_table(log, ("x", "hours"), "temp", ReadOptions())
    assert model.settings["rows_digest"] == rows.digest()
    # The table has what the model has.
    row = next(line for line in lines if line.startswith(f"{model.names[0]} "))
    assert float(row.split()[1]) == pytest.approx(model.belief.probabilities[0], abs=6e-4)
    assert float(row.split()[4]) == pytest.approx(model.fits[0].bound, abs=0.06)
    assert not out.with_name("temp.npz.checkpoint").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv", "temp.npz"]


def test_as_json(log: Path, tmp_path: Path) -> None:
    done = learned(log, tmp_path / "m.npz", "--json", "--seed", "3", kernels="SE,LIN")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["model"] == str(tmp_path / "m.npz")
    assert {k["kernel"] for k in found["kernels"]} == {"SE", "LIN"}
    assert sum(k["probability"] for k in found["kernels"]) == pytest.approx(1.0)
    assert found["settings"]["vbks"]["seed"] == 3
    again = learned(log, tmp_path / "n.npz", "--json", "--seed", "3", kernels="SE,LIN")
    assert json.loads(again.stdout)["kernels"] == found["kernels"]


def test_screened_and_fitted_again(log: Path, tmp_path: Path) -> None:
    done = learned(log, tmp_path / "m.npz", "--refit", "12", "--top", "2", "--stages", "0.5,1")
    assert done.exit_code == 0, done.output
    assert "screened: 3 kernels with 8 inducing points; the 2 most probable" in done.stdout
    model = read_model(tmp_path / "m.npz")
    assert [len(fit.inducing) for fit in model.fits] == [12, 12]
    screening = model.settings["screening"]
    assert set(model.names) == set(screening["kernels"][:2])
    ((gone, why),) = model.dropped
    assert gone == screening["kernels"][2]
    assert why == "screened out: not among the 2 most probable with 8 inducing points"
    assert model.history.rows.tolist() == [30.0, 60.0]


def test_a_scenario_whose_probe_then_uses_it(tmp_path: Path) -> None:
    out = tmp_path / "town.npz"
    done = call("town", "--kernels", "SE,MATERN32", *QUICK, "--out", str(out))
    assert done.exit_code == 0, done.output
    assert read_model(out).input_names == ("x", "y")
    (line,) = [text for text in done.stdout.splitlines() if text.startswith("  use ")]
    words = shlex.split(line)[2:]
    assert words == ["run", "town", "--set", f"belief={{model: {out}}}"]
    more = ("--budget", "4", "--policy", "max_entropy", "--out", str(tmp_path / "run"))
    used = call(*words[1:], *more, "--no-report", command="run")
    assert used.exit_code == 0, used.output
