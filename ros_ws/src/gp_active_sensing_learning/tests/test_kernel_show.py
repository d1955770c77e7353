"""What is shown while kernels are learned: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import dataclasses
import io
import math

import pytest
from rich.console import Console

from gp_active_sensing_learning.kernel_lines import show_learning
from gp_active_sensing_learning.kernel_selection.config import TrainingProgress

NOW = TrainingProgress(
    kernels=("SE", "PER×SE", "LIN"),
    finished=12,
    total=144,
    stage=2,
    stages=3,
    iteration=100,
    iterations=400,
    rows=500,
    bounds=(-12.34, math.nan, -20.0),
)


def test_bars_on_a_terminal() -> None:
    text = io.StringIO()
    console = Console(file=text, width=120, force_terminal=True, color_system=None)
    with show_learning(console) as show:
        show("screening", dataclasses.replace(NOW, finished=0, total=3, iteration=200))
        bars = show._bars
        assert bars is not None
        whole, group = bars.tasks
        # Half way through the second of three stages.
        assert whole.percentage == pytest.approx(50.0)
        assert (group.completed, group.total) == (200, 400)
        assert group.fields["note"] == "ELBO -12.3 (SE)"
        show("refit", dataclasses.replace(NOW, kernels=("SE",), bounds=(1.0,), total=1, finished=0))
        assert whole.percentage == 100.0
        assert not group.visible
    assert all(task.percentage == 100.0 for task in bars.tasks if task.visible)
    assert "screening 3 kernels" in text.getvalue()
    assert "refit 1 kernel " in text.getvalue()
