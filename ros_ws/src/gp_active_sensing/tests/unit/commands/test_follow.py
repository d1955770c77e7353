"""Following a file of JSON lines while it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.commands.demo import JsonLinesTail
from gp_active_sensing.errors import RunError


def test_lines_come_once_and_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    tail = JsonLinesTail(path)
    assert tail.read() == []
    path.write_text('{"stage": 1}\n{"sta')
    assert tail.read() == [{"stage": 1}]
    assert tail.read() == []
    with path.open("a") as stream:
        stream.write('ge": 2}\n{"stage": 3}\n')
    assert tail.read() == [{"stage": 2}, {"stage": 3}]
    assert tail.read() == []


def test_a_line_that_is_no_json_is_an_error_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("not json\n")
    with pytest.raises(RunError, match=r"records\.jsonl: expected a JSON object"):
        JsonLinesTail(path).read()
