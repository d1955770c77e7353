"""The reader of the pages finds what is wrong with a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import steps
from tests.reader import Reader


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("~~~sh\nrm -rf everything\n~~~", "nobody executes"),
        ("~~~sh\ngp-active-sensing policies --jsn\n~~~", "No such option"),
        ("~~~sh fails\ngp-active-sensing policies\n~~~", "exit code 0"),
        ("~~~sh\ngp-active-sensing policies\n~~~\n~~~text output\nzz…la\n~~~", "zz…la"),
        ("~~~yaml parameters\nnode: {ros__parameters: {}}\n~~~", "no node of that name"),
    ],
)
def test_what_is_wrong_is_found(text: str, message: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text.replace("~~~", "```"), encoding="utf-8")
    reader = Reader(page, tmp_path, {})
    *before, last = steps(page)
    for step in before:
        reader.play(step)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=message):
        reader.play(last)
