"""What the pages say of experts is what there is."""

from __future__ import annotations

import re

import pytest

from gp_active_sensing.experts.base import KINDS
from tests.pages import PACKAGE, REPOSITORY

DOCS = REPOSITORY / "docs"
if not (REPOSITORY / "Makefile").exists():
    pytest.skip("the package lies outside its repository", allow_module_level=True)

SOURCES = (
    "experts/query_log.py",
    "mission/expert_queries.py",
    "topology/lookup.py",
    "belief/belief.py",
)
SOURCES += ("belief/prior.py",)
NEVER = {"bad_stamp"}
"""Of a reading without a time, which an answer has."""


def test_every_reason_is_explained() -> None:
    code = [(PACKAGE / "gp_active_sensing" / name).read_text("utf-8") for name in SOURCES]
    found = set(re.findall(r"(?:ReadingError|\.reject)\(\s*\"(\w+)\"", "\n".join(code))) - NEVER
    assert len(found) > 10
    page = (DOCS / "reasons.md").read_text("utf-8")
    table = page.split("## Answers of an expert")[1].split("\n## ")[0]
    first = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    told = {word for cell in first for word in re.findall(r"`(\w+)`", cell)}
    assert {word for word in told if not word.startswith("answer_")} == found


def test_every_kind_is_explained() -> None:
    page = (DOCS / "experts.md").read_text("utf-8")
    table = page.split("| `expert.kind` |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(KINDS)
