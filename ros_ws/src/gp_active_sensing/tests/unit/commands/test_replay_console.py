"""What a replay shows while it goes."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gp_active_sensing.commands.replay_console import Showing


@pytest.mark.parametrize(
    ("mode", "headed"), [("again", True), ("decisions", True), ("belief", False)]
)
def test_the_columns_of_decisions_are_named(mode: str, headed: bool) -> None:
    said = io.StringIO()
    with Showing(Console(file=said, width=200)) as showing:
        showing.begin(mode, 10)
    heads = said.getvalue().splitlines()[-1].split()
    assert (heads == ["stage", "planner", "nat", "probe", "nat", "reading"]) is headed
