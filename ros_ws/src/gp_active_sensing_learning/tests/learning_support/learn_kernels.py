"""Logs to learn kernels from, and the command line that does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gp_active_sensing.cli import cli

QUICK = ("--inducing", "8", "--batch", "64", "--iterations", "30", "--restarts", "1")
QUICK += ("--set", "vbks.evaluate_every=10")


def call(*arguments: str, command: str = "learn") -> Result:
    return CliRunner().invoke(cli, [command, *arguments])


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
