"""Commands `gp-active-sensing model …`, without PyTorch."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gp_active_sensing.cli import cli
from gp_active_sensing.errors import ConfigError, RunError
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.kernel_model.model_file import read_model, write_model
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.topology import build_topology
from gp_active_sensing_learning import learned_file
from gp_active_sensing_learning.kernel_predictor import predict
from gp_active_sensing_learning.predict import predict_table
from tests.cases import for_each
from tests.kernel_models import make_model, rows


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["model", *arguments])


@pytest.fixture
def model() -> KernelModel:
    return make_model(["SE", "LIN", "PER×SE"], *rows())


@pytest.fixture
def file(tmp_path: Path, model: KernelModel) -> Path:
    path = tmp_path / "field.npz"
    write_model(path, model)
    return path


def table(path: Path, header: str, lines: list[str]) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8") as stream:
        head, *found = csv.reader(stream)
    return head, found


def test_show(file: Path, model: KernelModel) -> None:
    done = call("show", str(file))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "value of x, y, 60 rows of rows of a test"
    listed = [line.split()[0] for line in lines[3:6]]
    assert listed == list(model.names)
    assert float(lines[3].split()[1]) == pytest.approx(model.belief.probabilities[0], abs=6e-4)
    assert "closed form: 3 kernels" in lines
    assert "left out: PER×PER (1 kernel): diverged" in lines
    found = json.loads(call("show", str(file), "--json").stdout)
    assert [kernel["kernel"] for kernel in found["kernels"]] == list(model.names)
    assert sum(kernel["probability"] for kernel in found["kernels"]) == pytest.approx(1.0)
    assert found["dropped"] == [{"kernel": "PER×PER", "why": "diverged"}]
    assert next(k for k in found["kernels"] if k["kernel"] == "LIN")["lengths"] is None


def test_predict(file: Path, tmp_path: Path, model: KernelModel) -> None:
    X, _ = rows(seed=5, n=20)
    lines = [f"p{k},{y!r},{x!r}" for k, (x, y) in enumerate(X.tolist())]
    lines[4] = f"p4,,{float(X[4, 0])!r}"
    source = table(tmp_path / "ask.csv", "name,y,x", lines)
    out = tmp_path / "told.csv"
    done = call("predict", str(file), str(source), "--out", str(out))
    assert done.exit_code == 0, done.output
    assert done.stdout == f"written: {out}, 20 rows\n"
    assert "note: 1 of them lack an input and have no prediction" in done.stderr
    head, found = read(out)
    assert head == ["name", "y", "x", "mean", "std", "reading_std"]
    assert [row[0] for row in found] == [f"p{k}" for k in range(20)]
    assert found[4][3:] == ["", "", ""]
    whole = [k for k in range(20) if k != 4]
    numbers = np.array([found[k][3:] for k in whole], dtype=float)
    mean, variance = predict(model, X[whole])
    _, noisy = predict(model, X[whole], noisy=True)
    assert numbers[:, 0] == pytest.approx(mean)
    assert numbers[:, 1] == pytest.approx(np.sqrt(variance))
    assert numbers[:, 2] == pytest.approx(np.sqrt(noisy))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ask.csv", "field.npz", "told.csv"]


def test_predictions_in_the_unit_of_the_readings(tmp_path: Path) -> None:
    """A model of logarithms predicts mean and standard deviation of a log-normal field."""
    X, y = rows()
    model = make_model(["SE"], X, np.log(y), settings={"transform": "log"})
    write_model(tmp_path / "log.npz", model)
    source = table(tmp_path / "ask.csv", "x,y,mean", [f"{float(X[0, 0])!r},{float(X[0, 1])!r},3"])
    done = call("predict", str(tmp_path / "log.npz"), str(source), "--out", str(tmp_path / "o.csv"))
    assert done.exit_code == 0, done.output
    head, found = read(tmp_path / "o.csv")
    assert head[3:] == ["model_mean", "std", "reading_std"]  # a column of that name was there
    mean, variance = (float(v[0]) for v in predict(model, X[:1]))
    assert float(found[0][3]) == pytest.approx(np.exp(mean + variance / 2))
    expected = np.sqrt(np.expm1(variance)) * np.exp(mean + variance / 2)
    assert float(found[0][4]) == pytest.approx(expected)


def timed(path: Path, recipe: dict[str, Any] | None) -> tuple[Path, KernelModel]:
    """Write a model of a value by time [h]."""
    X = np.linspace(0.0, 48.0, 40)[:, None]
    settings = {} if recipe is None else {"recipe": {"kind": "table", **recipe}}
    model = make_model(["SE"], X, np.sin(X[:, 0] / 6), input_names=("time",), settings=settings)
    return write_model(path, model), model


STAMPS = ["2024-03-01T12:00:00Z,1", "2024-03-02 00:00,2"]


@for_each("command", ["predict", "report"])
def test_stamps_for_a_model_that_was_learned_from_numbers(tmp_path: Path, command: str) -> None:
    """The model's hour 0 is unknown, so that hours since the first row would be wrong."""
    model, _ = timed(tmp_path / "m.npz", {"times": {}})
    # The first cells say nothing about the column.
    source = table(tmp_path / "a.csv", "time,value", [",3"] * 3 + STAMPS)
    out = tmp_path / {"predict": "out.csv", "report": "page.html"}[command]
    data = {"predict": (), "report": ("--data",)}[command]
    done = call(command, str(model), *data, str(source), "--out", str(out))
    assert done.exit_code == 1
    assert "time is given by time stamps" in done.stderr
    assert not out.exists()
    # One that does not know what its inputs are is taken at the user's word, and that is said.
    older, _ = timed(tmp_path / "older.npz", None)
    done = call(command, str(older), *data, str(source), "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "since when" in done.stderr


def test_predictions_at_later_times(tmp_path: Path) -> None:
    """Hours of new time stamps count from hour 0 of the log."""
    file, model = timed(tmp_path / "m.npz", {"times": {"time": "2024-03-01T00:00:00+00:00"}})
    out = tmp_path / "out.csv"
    for cells in (["2024-03-01T12:00:00Z", "2024-03-02 00:00"], ["12", "24"]):
        source = table(tmp_path / "a.csv", "time", cells)
        done = call("predict", str(file), str(source), "--out", str(out))
        assert done.exit_code == 0, done.output
        told = [float(row[1]) for row in read(out)[1]]
        assert told == pytest.approx(predict(model, np.array([[12.0], [24.0]]))[0])


def test_predictions_at_places(file: Path, tmp_path: Path, model: KernelModel) -> None:
    town = build_topology(load_scenario("town").map)
    source = table(tmp_path / "ask.csv", "id", list(town.names[:5]))
    out = tmp_path / "out.csv"
    done = call("predict", str(file), str(source), "--map", "town", "--out", str(out))
    assert done.exit_code == 0, done.output
    told = [float(row[1]) for row in read(out)[1]]
    assert told == pytest.approx(predict(model, town.features[:5])[0], rel=1e-6)
    wrong = table(tmp_path / "wrong.csv", "id", [town.names[0], "nowhere"])
    done = call("predict", str(file), str(wrong), "--scenario", "town", "--out", str(out))
    assert done.exit_code == 1
    assert "'nowhere' is no place" in done.stderr
    given = ("--map", "town", "--set", "map.features=[relational]", "--out", str(out))
    done = call("predict", str(file), str(source), *given)
    assert done.exit_code == 1
    assert "the model's inputs are x, y" in done.stderr


def test_files_that_would_be_lost(file: Path, tmp_path: Path) -> None:
    source = table(tmp_path / "ask.csv", "x,y,value", ["1,2,3"])
    page = table(tmp_path / "page.html", "a page", [])
    files = {path: path.read_bytes() for path in (file, source, page)}
    done = call("predict", str(file), str(source), "--out", str(source))
    assert done.exit_code == 1
    assert "is the table that is read" in done.stderr
    for command, suffix, given in (
        ("report", ".html", ("--data", str(source))),
        ("prune", ".npz", ("--top", "1")),
        ("predict", ".csv", (str(source),)),
    ):
        of_other_kinds = [path for path in files if path.suffix != suffix]
        for out in (*of_other_kinds, tmp_path / "r.txt", tmp_path / "no" / f"out{suffix}"):
            done = call(command, str(file), *given, "--out", str(out))
            assert done.exit_code == 2, done.output
            assert "--out: " in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    with pytest.raises(RunError, match="cannot write"):
        predict_table(read_model(file), source, tmp_path / "no" / "out.csv")


def test_report(file: Path, tmp_path: Path) -> None:
    X, y = rows(seed=2)
    lines = [f"{a!r},{b!r},{v!r}" for (a, b), v in zip(X.tolist(), y.tolist(), strict=True)]
    source = table(tmp_path / "log.csv", "x,y,value", [*lines, "1,2,"])
    plain, with_rows = tmp_path / "plain.html", tmp_path / "rows.html"
    assert call("report", str(file), "--out", str(plain)).exit_code == 0
    done = call("report", str(file), "--data", str(source), "--out", str(with_rows))
    assert done.exit_code == 0, done.output
    assert "1 of 61 rows lack a number" in done.stderr
    assert with_rows.stat().st_size > plain.stat().st_size
    done = call("report", str(file), "--value", "v", "--out", str(plain))
    assert done.exit_code == 2
    assert "--value is for --data" in done.stderr


def test_a_run_and_a_scenario_are_compared_too(file: Path, tmp_path: Path) -> None:
    scenario = load_scenario("town", overrides=["budget.readings=3", "policy={name: random}"])
    run_scenario(scenario, tmp_path / "today")
    page = tmp_path / "page.html"
    for data in (str(tmp_path / "today"), "town"):
        done = call("report", str(file), "--data", data, "--out", str(page))
        assert done.exit_code == 0, done.output
        page.unlink()
    for more in (("twon",), ("town", "--value", "foo"), ("town", "--scale", "0")):
        done = call("report", str(file), "--data", *more, "--out", str(page))
        assert done.exit_code in (1, 2)
        assert not page.exists()


@for_each(
    ("settings", "words"),
    [
        ({"recipe": {"times": {"x": "abc"}}}, "settings.recipe.times.x: expected a time such as"),
        ({"recipe": {"scale": 0}}, "settings.recipe.scale: expected a number other than 0"),
        ({"recipe": {"transform": "log"}}, "expected one transform, got identity and log"),
        ({"vbks": {"samples": 1}}, "settings.vbks.samples: expected a whole number, 2 or more"),
        ({"vbks": {"hyperparameters": "some"}}, "settings.vbks.hyperparameters: expected full or"),
        ({"screening": {"inducing": 8, "kernels": ["SE"], "bounds": []}}, "expected 1 numbers"),
        ({"versions": {"torch": 2}}, "settings.versions.torch: expected text"),
    ],
)
def test_settings_are_checked_when_a_model_is_read_and_written(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    bad = make_model(("SE",), *rows(n=20), settings=settings)
    with pytest.raises(ValueError, match=words):
        learned_file.write_model(tmp_path / "new.npz", bad)
    assert not (tmp_path / "new.npz").exists()
    with pytest.raises(ConfigError, match=words) as caught:
        learned_file.read_model(write_model(tmp_path / "m.npz", bad))
    assert str(caught.value).startswith(f"{tmp_path / 'm.npz'}: is damaged")
