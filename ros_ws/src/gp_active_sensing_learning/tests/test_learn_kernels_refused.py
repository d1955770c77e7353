"""What `gp-active-sensing learn --kernels` makes of bad input and wrong usage."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from learning_support.learn_kernels import call, learned, log
from tests.cases import for_each

__all__ = ["log"]  # a fixture
pytestmark = pytest.mark.heavy("learn")


# -- usage ---------------------------------------------------------------------------------------


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


@for_each(
    ("arguments", "message"),
    [
        (("--kernels", "k13"), "unknown base kernel 'k13'"),
        (("--kernels", "SE++PER"), "is no kernel: expected base kernels with"),
        (("--kernels", "SE", "--set", "vbks.rat=1"), "Did you mean 'rate'"),
        (("--kernels", "SE", "--set", "vbks.rate=-1"), "vbks.rate"),
    ],
)
def test_settings_that_are_wrong(log: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call(str(log), "--inputs", "x", "--value", "temp", *arguments)
    assert done.exit_code == 1, done.output
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
    assert done.stdout == "", "nothing is said of rows that nothing is learned from"
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv"]
