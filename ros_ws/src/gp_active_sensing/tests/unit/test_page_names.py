"""What the pages and the shipped parameter files name is there: files, classes, keys, choices."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.config import param_of
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.stream_config import ReadingConfig
from tests.page_names import NOTATION, pages_with_names, wrong_names
from tests.pages import PACKAGE, REPOSITORY


@pytest.mark.parametrize("page", pages_with_names(), ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_what_a_page_names_is_there(page: Path) -> None:
    assert wrong_names(page) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("see `planning/bal/tree.py`", ""),
        ("see `planning/bal/serch.py`", "no such file"),
        ("see `bounds.py` and `bunds.py`", "no such file"),
        ("`planning/bal/tree.py::published`", ""),
        ("`planning/bal/tree.py::publish`", "defines no publish"),
        ("`Bal.horizon` steps", ""),
        ("`Bal.horizont` steps", "Bal has no horizont"),
        ("`Expander` makes it", "no Expander"),
        ("`no_such_word` of the code", "no no_such_word"),
        ("~~~\n`Bal.horizont`\n~~~", ""),
        ("`/home/robot/maps/mine.geojson` of the reader", ""),
        ("save this as `buoy.py`:\n~~~python file=buoy.py\npass\n~~~", ""),
        ("save this as `boy.py`:\n~~~python file=buoy.py\npass\n~~~", "no such file"),
    ],
)
def test_wrong_names_are_found(text: str, problem: str) -> None:
    found = wrong_names(NOTATION, text.replace("~~~", "```"))
    assert (problem in found[0] and len(found) == 1) if problem else found == []


def choices(config: Any, path: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (key, choices) of a configuration and of its sections."""
    hints = typing.get_type_hints(config)
    for field in dataclasses.fields(config):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind):
            yield from choices(kind, f"{path}{field.name}.")
        elif found := param_of(field).choices:
            yield f"{path}{field.name}", tuple(map(str, found))


def documented(text: str) -> dict[str, str]:
    """Return value and comment of each key of a parameter file, of keys in comments too."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    line_of_a_key = re.compile(r"^(?P<in>[ ]*(?:# )?[ ]*)(?P<key>\w+):(?P<rest>.*)$")
    for line in text.splitlines():
        if match := line_of_a_key.match(line):
            depth = len(match["in"].replace("# ", ""))
            above = [(d, key) for d, key in above if d < depth]
            above.append((depth, match["key"]))
            names = [key for _, key in above if key != "ros__parameters"]
            found[".".join(names)] = match["rest"]
    return found


def test_the_shipped_parameters_name_every_choice() -> None:
    said = documented((PACKAGE / "config" / "probe.yaml").read_text(encoding="utf-8"))
    known = {key: found for key, found in choices(ActiveSensingConfig) if key in said}
    assert {"map.kind", "pose.type", "waypoint.navigate"} <= known.keys()
    for key, found in known.items():
        words = set(re.findall(r"\w+", said[key]))
        missing = [choice for choice in found if choice.rpartition("/")[2] not in words]
        assert missing == [], f"config/probe.yaml: {key} does not name {missing}: {said[key]}"


def test_the_gate_of_the_page_is_the_gate() -> None:
    page = (PACKAGE / "sim" / "README.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"`reading\.gate` \((\d+)\)", page)
    assert float(said) == ReadingConfig().gate
