"""What is shown while kernels are learned: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import dataclasses
import io
import math

import pytest
from rich.console import Console

from gp_active_sensing_learning.kernel_lines import LearningDisplay, progress_line, show_learning
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


def test_a_line() -> None:
    assert progress_line("screening", NOW) == (
        "screening  12/144 kernels done  SE and 2 more [2/3]: 500 rows, step 100/400, "
        "ELBO -12.3 (SE)"
    )
    alone = dataclasses.replace(
        NOW, kernels=("LIN",), bounds=(math.nan,), stage=1, stages=1, total=1, finished=0
    )
    assert progress_line("learning", alone) == "learning 0/1 kernels done  LIN: step 100/400"


def test_lines_where_there_is_no_terminal() -> None:
    text = io.StringIO()
    with show_learning(Console(file=text, width=200)) as show:
        for step in range(0, 401, 20):
            show("learning", dataclasses.replace(NOW, stage=1, iteration=step))
        for step in range(0, 401, 20):
            show("learning", dataclasses.replace(NOW, stage=2, iteration=step))
    lines = text.getvalue().splitlines()
    # The beginning of a stage and its quarters, not every step.
    assert [line.split("step ")[1].split("/")[0] for line in lines] == [
        *("0", "100", "200", "300", "400"),
        *("0", "100", "200", "300", "400"),
    ]


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


def test_an_interruption_does_not_look_like_the_end() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    shown: list[LearningDisplay] = []

    def interrupted() -> None:
        with show_learning(console) as show:
            show("learning", dataclasses.replace(NOW, total=3, finished=0, stages=2, iteration=0))
            shown.append(show)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert shown[0]._bars.tasks[0].percentage == pytest.approx(50.0)
