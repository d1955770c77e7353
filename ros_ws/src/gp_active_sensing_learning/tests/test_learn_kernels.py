"""`gp-active-sensing learn --kernels`, as a user types it: from a log to a model and its use."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.kernel_model import read_model
from gp_active_sensing_learning.data.dataset import ReadOptions
from gp_active_sensing_learning.data.table import read_table
from gp_active_sensing_learning.kernel_predictor import predict
from learning_support.learn_kernels import QUICK, call, drawn, learned, log, log_of

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


def test_what_is_not_said_when_a_model_is_continued(log: Path, tmp_path: Path) -> None:
    X, y = drawn()
    half, old, new = tmp_path / "half", tmp_path / "old.npz", tmp_path / "new.npz"
    half.mkdir()
    given = ("--scale", "2", "--set", "belief.transform=log")
    assert learned(log_of(half, X[:30], y[:30]), old, *given, kernels="SE").exit_code == 0
    more = ("--continue", str(old), "--iterations", "10", "--out", str(new))
    done = call(str(log), *more)
    assert done.exit_code == 0, done.output
    before, after = read_model(old), read_model(new)
    assert after.names == before.names
    assert after.history.rows.tolist() == [30.0, 60.0]
    assert (after.settings["vbks"]["batch"], len(after.fits[0].inducing)) == (64, 8)
    assert (after.scaling.input_shift == before.scaling.input_shift).all()
    assert after.settings["recipe"] == before.settings["recipe"]
    assert after.settings["transform"] == "log"
    assert (after.input_names, after.output_name) == (("x", "hours"), "temp")
    assert np.exp(predict(after, X)[0]).mean() == pytest.approx(2 * y.mean(), rel=0.05)
    for wrong in (
        ("--scale", "1"),
        ("--set", "belief.transform=identity"),
        ("--value", "hours"),
        ("--inputs", "hours,x"),
    ):
        refused = call(str(log), *more, *wrong)
        assert refused.exit_code == 1, refused.output
        assert "the model to be continued has" in refused.stderr
    assert call("town", *more).exit_code == 1
    old.write_bytes(old.read_bytes()[:-200])
    cut = call(str(log), *more)
    assert cut.exit_code == 1
    assert "unexpected" not in cut.stderr


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
