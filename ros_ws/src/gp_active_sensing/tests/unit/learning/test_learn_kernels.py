"""`gp-active-sensing learn --kernels`, as a user types it: from a log to a model and its use."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gp_active_sensing.cli import _cli
from gp_active_sensing.learning import store as store_module
from gp_active_sensing.learning.read_table import read_table
from gp_active_sensing.learning.workplace import NAME
from gp_active_sensing.selection import KernelModel, kernel_belief, read_model
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.topology import build_topology

pytestmark = pytest.mark.usefixtures("gpytorch_or_skip")

QUICK = ("--inducing", "8", "--batch", "64", "--iterations", "30", "--restarts", "1")
QUICK += ("--set", "vbks.evaluate_every=10")


def call(*arguments: str, command: str = "learn") -> Result:
    return CliRunner().invoke(_cli, [command, *arguments])


def learned(log: Path, out: Path, *more: str, kernels: str = "SE,LIN,PER") -> Result:
    columns = ("--inputs", "x,hours", "--value", "temp")
    return call(str(log), "--kernels", kernels, *columns, *QUICK, "--out", str(out), *more)


def log_of(tmp_path: Path, X: np.ndarray, y: np.ndarray) -> Path:
    path = tmp_path / "log.csv"
    lines = [f"{a!r},{b!r},{value!r}" for (a, b), value in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(["x,hours,temp", *lines]), encoding="utf-8")
    return path


def drawn(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(0, 100, n), np.sort(rng.uniform(0, 48, n))])
    y = 20 + 3 * np.sin(X[:, 0] / 15) + np.sin(2 * np.pi * X[:, 1] / 24)
    return X, y + 0.1 * rng.standard_normal(n)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return log_of(tmp_path, *drawn())


def same(one: KernelModel, other: KernelModel) -> None:
    """Two models believe the same, to the bit."""
    assert one.names == other.names
    assert one.dropped == other.dropped
    assert (one.belief.probabilities == other.belief.probabilities).all()
    for a, b in zip(one.fits, other.fits, strict=True):
        assert a.bound == b.bound
        for part in ("theta_mean", "theta_root", "inducing", "mean", "root", "trace"):
            assert (getattr(a, part) == getattr(b, part)).all(), part


def test_from_a_log_to_a_model(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "temp.npz"
    done = learned(log, out)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == f"60 rows of {log}: temp of x, hours; 3 kernels"
    assert any("kernels done" in line and "step 30/30, ELBO" in line for line in lines)
    head = next(line for line in lines if line.startswith("kernel"))
    assert head.split() == "kernel q* s.e. softmax(L) L [nat] noise steps ended lengths".split()
    assert f"  model    {out}" in lines
    assert f"  predict  gp-active-sensing model predict {out} ROWS.csv --out predicted.csv" in lines
    model = read_model(out)
    assert set(model.names) == {"SE", "LIN", "PER"}
    assert model.rows == 60
    assert model.input_names == ("x", "hours")
    assert model.settings["recipe"]["kind"] == "table"
    assert model.settings["expressions"] == ["SE", "LIN", "PER"]
    assert model.settings["vbks"]["inducing"] == 8
    assert model.settings["rows_digest"] == read_table(log, ("x", "hours"), "temp").digest()
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


def test_one_kernel_only(log: Path, tmp_path: Path) -> None:
    done = learned(log, tmp_path / "m.npz", kernels="SE")
    assert done.exit_code == 0, done.output
    assert read_model(tmp_path / "m.npz").belief.probabilities.tolist() == [1.0]


def test_stages_and_fewer_kernels(log: Path, tmp_path: Path) -> None:
    done = learned(log, tmp_path / "m.npz", "--stages", "0.5,1", "--top", "2")
    assert done.exit_code == 0, done.output
    assert "[1/2]: 30 rows, step" in done.stdout
    assert "pruned: not among the 2 most probable" in done.stdout
    model = read_model(tmp_path / "m.npz")
    assert len(model.fits) == 2
    assert model.history.rows.tolist() == [30.0, 60.0]
    assert len(model.history.names) == 3


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


def test_more_rows_for_a_model(log: Path, tmp_path: Path) -> None:
    X, y = drawn()
    half = tmp_path / "half"
    half.mkdir()
    assert learned(log_of(half, X[:30], y[:30]), tmp_path / "old.npz").exit_code == 0
    more = ("--continue", str(tmp_path / "old.npz"))
    done = call(
        str(log), *more, "--inputs", "x,hours", "--value", "temp", "--iterations", "30",
        "--out", str(tmp_path / "new.npz"),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    old, new = read_model(tmp_path / "old.npz"), read_model(tmp_path / "new.npz")
    assert set(new.names) == set(old.names)  # its kernels, where none are named
    assert new.history.rows.tolist() == [30.0, 60.0]
    assert len(new.fits[0].inducing) == 8  # and its settings, where nothing else is said
    assert new.settings["vbks"]["batch"] == 64
    assert (new.scaling.input_shift == old.scaling.input_shift).all()
    wrong = call(str(log), *more, "--inputs", "hours,x", "--value", "temp", *QUICK)
    assert wrong.exit_code == 1
    assert "the model to be continued has the inputs x, hours" in wrong.stderr


def test_what_is_not_said_when_a_model_is_continued(log: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.npz"
    given = ("--scale", "2", "--set", "belief.transform=log")
    assert learned(log, old, *given, kernels="SE").exit_code == 0
    more = ("--continue", str(old), "--iterations", "10", "--out", str(tmp_path / "new.npz"))
    done = call(str(log), *more)
    assert done.exit_code == 0, done.output
    before, after = read_model(old), read_model(tmp_path / "new.npz")
    assert after.settings["recipe"] == before.settings["recipe"]
    assert after.settings["transform"] == "log"
    assert (after.input_names, after.output_name) == (("x", "hours"), "temp")
    X, y = drawn()
    assert np.exp(after.predict(X)[0]).mean() == pytest.approx(2 * y.mean(), rel=0.05)
    for wrong, message in (
        (("--scale", "1"), "--scale: the model to be continued has 2, this says 1"),
        (("--set", "belief.transform=identity"), "has log, this says identity"),
        (("--value", "hours", "--inputs", "x"), "has temp, this says hours"),
    ):
        refused = call(str(log), *more, *wrong)
        assert refused.exit_code == 1, refused.output
        assert message in refused.stderr
    town = call("town", *more)
    assert town.exit_code == 1
    assert "was learned from columns of a table, scenario 'town' gives places" in town.stderr


def test_a_wide_table(tmp_path: Path) -> None:
    town = build_topology(load_scenario("town").map)
    wide = tmp_path / "wide.csv"
    lines = [f"{t}," + ",".join(f"{20 + t + k}" for k in range(10)) for t in range(3)]
    wide.write_text("\n".join([f"hours,{','.join(town.names[:10])}", *lines]), encoding="utf-8")
    given = ("--map", "town", "--kernels", "SE", *QUICK)
    for inputs, names in (((), "x, y"), (("--inputs", "x,y,hours"), "x, y, hours")):
        out = tmp_path / f"{len(inputs)}.npz"
        done = call(str(wide), *given, *inputs, "--out", str(out))
        assert done.exit_code == 0, done.output
        assert f"30 rows of {wide}: value of {names}; 1 kernel" in done.stdout
        compared = call(
            "report", str(out), "--data", str(wide), "--map", "town",
            "--out", str(tmp_path / "page.html"), command="model",
        )  # fmt: skip
        assert compared.exit_code == 0, compared.output


def test_pruned_with_the_samples_and_the_seed_of_the_learning(log: Path, tmp_path: Path) -> None:
    given = ("--top", "2", "--seed", "7", "--set", "vbks.samples=50")
    assert learned(log, tmp_path / "m.npz", *given).exit_code == 0
    model = read_model(tmp_path / "m.npz")
    bounds = [fit.bound for fit in model.fits]
    expected = kernel_belief(bounds, samples=50, seed=7)
    assert (model.belief.probabilities == expected.probabilities).all()
    assert (model.belief.errors == expected.errors).all()


def test_a_scenario_whose_probe_then_uses_it(tmp_path: Path) -> None:
    out = tmp_path / "town.npz"
    done = call("town", "--kernels", "SE,MAT32", *QUICK, "--out", str(out))
    assert done.exit_code == 0, done.output
    assert read_model(out).input_names == ("x", "y")
    (line,) = [text for text in done.stdout.splitlines() if text.startswith("  use ")]
    words = shlex.split(line)[2:]
    assert words == ["run", "town", "--set", f"belief={{model: {out}}}"]
    more = ("--budget", "4", "--policy", "max_entropy", "--out", str(tmp_path / "run"))
    used = call(*words[1:], *more, "--no-report", command="run")
    assert used.exit_code == 0, used.output


def test_a_bag(tmp_path: Path) -> None:
    pytest.importorskip("rosbags", reason="the extra [bag] is not installed")
    done = call("town_sample", "--kernels", "SE", *QUICK, "--out", str(tmp_path / "bag.npz"))
    assert done.exit_code == 0, done.output
    assert "12 rows of bag town_sample on map 'town'" in done.stdout
    raw = call(
        "town_sample", "--kernels", "SE", "--inputs", "x,y,hours", *QUICK,
        "--out", str(tmp_path / "raw.npz"),
    )  # fmt: skip
    assert raw.exit_code == 0, raw.output
    assert "hours are counted since 1970-01-01" in raw.stderr
    model = read_model(tmp_path / "raw.npz")
    assert model.input_names == ("x", "y", "hours")
    assert model.output_name == "temperature"


# -- interrupted ---------------------------------------------------------------------------------


REFIT = ("--refit", "10", "--top", "2")


@pytest.fixture
def interrupted_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Press Ctrl-C after so many messages of progress."""
    from gp_active_sensing.learning import kernel_show

    original = kernel_show.Show.__call__
    left = [0]

    def pressed(self: Any, part: str, now: Any) -> None:
        original(self, part, now)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(kernel_show.Show, "__call__", pressed)

    def arm(count: int) -> None:
        left[0] = count

    return arm


@pytest.mark.parametrize(
    ("count", "more"),
    [(3, ()), (6, ("--stages", "0.5,1")), (4, REFIT), (8, REFIT)],
)
def test_interrupted_and_resumed(
    log: Path, tmp_path: Path, interrupted_at: Any, more: tuple[str, ...], count: int
) -> None:
    assert learned(log, tmp_path / "whole.npz", *more, "--restarts", "2").exit_code == 0
    out = tmp_path / "m.npz"
    interrupted_at(count)
    cut = learned(log, out, *more, "--restarts", "2")
    assert cut.exit_code == 1
    assert f"interrupted; the same command with --out {out} --resume goes on" in cut.stderr
    assert not out.exists()
    checkpoint = tmp_path / "m.npz.checkpoint"
    assert checkpoint.is_dir()
    assert not list(checkpoint.glob("rows-*"))
    refused = learned(log, out, *more, "--restarts", "2")
    assert refused.exit_code == 1
    assert "holds a learning that was begun" in refused.stderr
    other = learned(log, out, *more, "--restarts", "3", "--resume")
    assert other.exit_code == 1
    assert "is of other rows, kernels or settings" in other.stderr
    done = learned(log, out, *more, "--restarts", "2", "--resume")
    assert done.exit_code == 0, done.output
    assert not checkpoint.exists()
    same(read_model(out), read_model(tmp_path / "whole.npz"))


def test_a_checkpoint_of_one_s_own(log: Path, tmp_path: Path, interrupted_at: Any) -> None:
    own = ("--checkpoint", str(tmp_path / "kept"))
    nothing = learned(log, tmp_path / "m.npz", *own, "--resume")
    assert nothing.exit_code == 1
    assert "there is nothing to resume" in nothing.stderr
    assert not (tmp_path / "kept").exists()
    interrupted_at(2)
    cut = learned(log, tmp_path / "m.npz", *own)
    assert f"--checkpoint {tmp_path / 'kept'} --resume goes on" in cut.stderr
    assert learned(log, tmp_path / "m.npz", *own, "--resume").exit_code == 0
    assert (tmp_path / "kept").is_dir()  # it is the user's, and stays


def test_the_files_of_a_user_stay(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "IN_MEMORY", 10)
    out = tmp_path / "m.npz"
    for folder in (tmp_path, tmp_path / "m.npz.checkpoint"):
        folder.mkdir(exist_ok=True)
        for name in ("rows-inputs.npy", "rows-mine.npy"):
            (folder / name).write_text("mine", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    assert learned(log, out, kernels="SE").exit_code == 0
    assert learned(log, out, "--checkpoint", str(tmp_path), kernels="SE").exit_code == 0
    left = {path for path in tmp_path.rglob("*") if tmp_path / NAME not in (path, *path.parents)}
    assert left == {*before, out}
    assert not list((tmp_path / NAME).rglob("rows-*"))
    for path in tmp_path.rglob("rows-*"):
        assert path.read_text(encoding="utf-8") == "mine"


def test_names_of_their_own(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted_at: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ("--kernels", "SE", "--inputs", "x", "--value", "temp", *QUICK)
    interrupted_at(2)
    cut = call("log.csv", *given)
    assert "the same command with --out log-kernels.npz --resume goes on" in cut.stderr
    assert call("log.csv", *given).exit_code == 0  # another one meanwhile
    assert call("log.csv", *given, "--resume").exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("log-kernels-2.npz", "log-kernels.npz", "log.csv"),
    ]
    same(read_model(Path("log-kernels.npz")), read_model(Path("log-kernels-2.npz")))


# -- bad input -----------------------------------------------------------------------------------


def test_constant_targets(tmp_path: Path) -> None:
    X, y = drawn()
    done = learned(log_of(tmp_path, X, np.full_like(y, 21.5)), tmp_path / "m.npz")
    assert done.exit_code == 1
    assert "temp is 21.5 in all 60 rows; a field that does not vary has no kernel" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv"]


def test_duplicated_inputs(tmp_path: Path) -> None:
    X, y = drawn()
    done = learned(log_of(tmp_path, np.repeat(X[:10], 6, axis=0), y), tmp_path / "m.npz")
    assert done.exit_code == 0, done.output
    assert "note: 50 of 60 rows have inputs that came before; all are used" in done.stderr
    model = read_model(tmp_path / "m.npz")
    assert model.rows == 60
    assert all(np.isfinite(fit.bound) for fit in model.fits)
    assert np.isfinite(model.predict(X[:10])[0]).all()


def test_one_input_for_all(tmp_path: Path) -> None:
    X, y = drawn()
    still = log_of(tmp_path, np.repeat(X[:1], 60, axis=0), y)
    done = learned(still, tmp_path / "m.npz", "--iterations", "300", kernels="SE")
    assert done.exit_code == 0, done.output
    assert "in every row: nothing can be learned along it" in done.stderr
    mean, variance = read_model(tmp_path / "m.npz").predict(X[:1], noisy=True)
    assert mean[0] == pytest.approx(y.mean(), abs=0.3)
    assert variance[0] == pytest.approx(y.var(), rel=0.4)


def test_fewer_rows_than_inducing_points(tmp_path: Path) -> None:
    X, y = drawn(12)
    done = learned(log_of(tmp_path, X, y), tmp_path / "m.npz", "--inducing", "30")
    assert done.exit_code == 0, done.output
    assert "30 inducing inputs asked for, 12 distinct inputs there are; 12 are used" in done.stderr
    assert len(read_model(tmp_path / "m.npz").fits[0].inducing) == 12


def test_fewer_rows_than_are_enough(tmp_path: Path) -> None:
    X, y = drawn(7)
    done = learned(log_of(tmp_path, X, y), tmp_path / "m.npz")
    assert done.exit_code == 1
    assert "expected 8 rows or more with a number in every column, got 7" in done.stderr


def test_columns_of_nan(tmp_path: Path) -> None:
    X, y = drawn()
    X[:, 1] = np.nan
    done = learned(log_of(tmp_path, X, y), tmp_path / "m.npz")
    assert done.exit_code == 1
    assert "column 'hours' has no number in any of its 60 rows; leave it out" in done.stderr


def test_some_nan(tmp_path: Path) -> None:
    X, y = drawn()
    X[3, 1] = y[8] = np.nan
    done = learned(log_of(tmp_path, X, y), tmp_path / "m.npz")
    assert done.exit_code == 0, done.output
    assert "2 of 60 rows lack a number and are left out: hours in line 5; temp in line 10" in (
        done.stderr
    )
    assert read_model(tmp_path / "m.npz").rows == 58


def test_wildly_different_scales(log: Path, tmp_path: Path) -> None:
    """Other units change the belief by rounding only."""
    X, y = drawn()
    (tmp_path / "far").mkdir()
    far = log_of(tmp_path / "far", X * [1e-7, 1e9] + [0.0, 3e10], 1e8 * y)
    for path, name in ((log, "near.npz"), (far, "far.npz")):
        done = learned(path, tmp_path / name)
        assert done.exit_code == 0, done.output
    near, scaled = read_model(tmp_path / "near.npz"), read_model(tmp_path / "far.npz")
    assert scaled.names == near.names
    assert [f.bound for f in scaled.fits] == pytest.approx([f.bound for f in near.fits], abs=0.5)
    mean, _ = scaled.predict(X * [1e-7, 1e9] + [0.0, 3e10])
    assert mean / 1e8 == pytest.approx(near.predict(X)[0], abs=0.05)


@pytest.fixture
def diverging(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of kernels whose bound is never finite."""
    from gp_active_sensing.learning.vbks import optimiser

    names: set[str] = set()
    begin, bound = optimiser.Optimiser.__init__, optimiser.Optimiser.bound

    def noted(self: Any, composites: Any, *arguments: Any, **options: Any) -> None:
        begin(self, composites, *arguments, **options)
        self.of_test = [c.name for c in composites]

    def spoilt(self: Any, *arguments: Any) -> Any:
        found = bound(self, *arguments)
        for i, name in enumerate(self.of_test):
            if name in names:
                found[i] = -np.inf
        return found

    monkeypatch.setattr(optimiser.Optimiser, "__init__", noted)
    monkeypatch.setattr(optimiser.Optimiser, "bound", spoilt)
    return names


def test_a_kernel_that_diverges(log: Path, tmp_path: Path, diverging: set[str]) -> None:
    assert learned(log, tmp_path / "sound.npz").exit_code == 0
    diverging.add("LIN")
    done = learned(log, tmp_path / "m.npz")
    assert done.exit_code == 0, done.output
    assert "warning: kernel LIN dropped: its bound was not finite" in done.stderr
    assert "left out: LIN (1 kernel): dropped: its bound was not finite" in done.stdout
    sound, model = read_model(tmp_path / "sound.npz"), read_model(tmp_path / "m.npz")
    assert set(model.names) == {"SE", "PER"}
    bounds = {fit.name: fit.bound for fit in sound.fits}
    assert all(fit.bound == bounds[fit.name] for fit in model.fits)  # others are not affected
    diverging.update({"SE", "PER"})
    nothing = learned(log, tmp_path / "n.npz")
    assert nothing.exit_code == 1
    assert "no kernel could be learned" in nothing.stderr
    assert not list(tmp_path.glob("n.npz*"))


def test_models_that_cannot_be_continued(log: Path, tmp_path: Path) -> None:
    whole = tmp_path / "m.npz"
    assert learned(log, whole, kernels="SE").exit_code == 0
    cut = tmp_path / "cut.npz"
    cut.write_bytes(whole.read_bytes()[:-200])
    other = tmp_path / "other.npz"
    np.savez(other, a=np.zeros(3))
    for file in (cut, other, tmp_path / "none.npz"):
        done = call(str(log), "--inputs", "x,hours", "--value", "temp", "--continue", str(file))
        assert done.exit_code == 1, done.output
        assert str(file) in done.stderr
        assert "unexpected" not in done.stderr


# -- usage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--inducing", "8"), "--inducing is for kernels: give --kernels too"),
        (("--inputs", "x"), "--inputs is for kernels: give --kernels too"),
        (("--resume",), "--resume is for kernels"),
        (("--kernels", "k12", "--lambda", "point"), "--lambda is for length-scales"),
        (("--kernels", "k12", "--subset", "9"), "--subset is for length-scales"),
        (("--kernels", "k12", "--jobs", "2", "--cluster", "x:1"), "--jobs is for this machine"),
        (("--kernels", "k12", "--stages", "0.5,0.2"), "--stages: expected ascending shares"),
        (("--kernels", "k12", "--stages", "half"), "--stages: expected ascending shares"),
        (("--kernels", "k12", "--out", "m.yaml"), "--out: expected a name that ends in .npz"),
        (("--kernels", "k12", "--out", "no/m.npz"), "--out: there is no folder"),
        (("--kernels", "k12", "--report", "page.txt"), "a name that ends in .html"),
        (("--kernels", "k12", "--report", "no/page.html"), "--report: there is no folder"),
        (("--continue", "m.npz", "--refit", "9"), "--continue goes without --refit"),
    ],
)
def test_wrong_usage(log: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call(str(log), *arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kernels", "k13"), "unknown base kernel 'K13'"),
        (("--kernels", "SE++PER"), "is no kernel: expected a base kernel before '+'"),
        (("--kernels", "SE", "--set", "vbks.rat=1"), "vbks.rat: unknown key. Did you mean 'rate'"),
        (("--kernels", "SE", "--set", "vbks.rate=-1"), "vbks.rate"),
        (("--kernels", "SE", "--set", "vbks.dtype=float32"), "float32 has too few digits"),
    ],
)
def test_settings_that_are_wrong(log: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call(str(log), "--inputs", "x", "--value", "temp", *arguments)
    assert done.exit_code == 1, done.output
    assert message in done.stderr


def test_no_gpu(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    done = learned(log, tmp_path / "m.npz", "--device", "cuda")
    assert done.exit_code == 1
    assert "sees no GPU; give cpu, or auto" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv"]


def test_a_defect_leaves_nothing_behind(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gp_active_sensing.learning.vbks import optimiser

    def broken(*arguments: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(optimiser.Optimiser, "bound", broken)
    done = learned(log, tmp_path / "m.npz")
    assert done.exit_code == 1
    assert "unexpected ZeroDivisionError" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv"]


def test_without_the_extra(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.startswith("gp_active_sensing.learning.vbks.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    done = learned(log, tmp_path / "m.npz")
    assert done.exit_code == 1
    assert "pip install 'gp_active_sensing[learn]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv"]
