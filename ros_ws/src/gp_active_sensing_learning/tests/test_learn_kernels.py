"""Command `gp-active-sensing learn --kernels`: from a log to a model and its use."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gp_active_sensing.cli import cli
from gp_active_sensing.kernel_model.model_file import read_model
from gp_active_sensing_learning import kernel_lines
from gp_active_sensing_learning.data.dataset import ReadOptions
from gp_active_sensing_learning.data.table import read_table
from learning_support.small import same_model
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

QUICK = ("--inducing", "8", "--batch", "64", "--iterations", "30", "--restarts", "1")
QUICK += ("--set", "vbks.evaluate_every=10")


def call(*arguments: str, command: str = "learn") -> Result:
    return CliRunner().invoke(cli, [command, *arguments])


def learned(log: Path, out: Path, *more: str, kernels: str = "SE,LIN,PER") -> Result:
    columns = ("--inputs", "x,hours", "--value", "temp")
    return call(str(log), "--kernels", kernels, *columns, *QUICK, "--out", str(out), *more)


def drawn(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(0, 100, n), np.sort(rng.uniform(0, 48, n))])
    y = 20 + 3 * np.sin(X[:, 0] / 15) + np.sin(2 * np.pi * X[:, 1] / 24)
    return X, y + 0.1 * rng.standard_normal(n)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path, (X, y) = tmp_path / "log.csv", drawn()
    lines = [f"{a!r},{b!r},{value!r}" for (a, b), value in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(["x,hours,temp", *lines]), encoding="utf-8")
    return path


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


REFIT = ("--refit", "10", "--top", "2")


@for_each(("count", "more"), [(6, ("--stages", "0.5,1")), (4, REFIT), (8, REFIT)])
@pytest.mark.long
def test_interrupted_and_resumed(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], count: int
) -> None:
    """Interrupt the learning after a number of progress messages."""
    assert learned(log, tmp_path / "whole.npz", *more, "--restarts", "2").exit_code == 0
    original, told = kernel_lines.LearningDisplay.__call__, []

    def pressed(self: kernel_lines.LearningDisplay, part: str, now: Any) -> None:
        original(self, part, now)
        told.append(part)
        if len(told) == count:
            raise KeyboardInterrupt

    monkeypatch.setattr(kernel_lines.LearningDisplay, "__call__", pressed)
    out = tmp_path / "m.npz"
    cut = learned(log, out, *more, "--restarts", "2")
    assert cut.exit_code == 1
    assert f"interrupted; the same command with --out {out} --resume goes on" in cut.stderr
    assert not out.exists()
    checkpoint = tmp_path / "m.npz.checkpoint"
    assert checkpoint.is_dir()
    assert not list(checkpoint.glob("rows-*"))
    done = learned(log, out, *more, "--restarts", "2", "--resume")
    assert done.exit_code == 0, done.output
    assert not checkpoint.exists()
    same_model(read_model(out), read_model(tmp_path / "whole.npz"))


@for_each(
    ("arguments", "message"),
    [
        (("--inputs", "x"), "--inputs is for kernels: give --kernels too"),
        (("--kernels", "k12", "--lambda", "point"), "--lambda is for length-scales"),
        (("--kernels", "k12", "--stages", "0.5,0.2"), "--stages: expected ascending shares"),
        (("--kernels", "k12", "--out", "m.yaml"), "--out: expected a name that ends in .npz"),
        (("--kernels", "k12", "--report", "no/page.html"), "--report: there is no folder"),
    ],
)
def test_wrong_usage(log: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call(str(log), *arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr


def test_without_the_extra(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        n
        for n in sys.modules
        if n.startswith("gp_active_sensing_learning.kernel_selection.") and not n.endswith("config")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    done = learned(log, tmp_path / "m.npz")
    assert done.exit_code == 1
    assert "in a checkout: make heavy" in done.stderr
    assert done.stdout == "", "rows that are not learned from are not reported"
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv"]
