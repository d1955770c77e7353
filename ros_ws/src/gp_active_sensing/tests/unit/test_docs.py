"""The pages say what is true: blocks run, commands and options exist, links lead somewhere."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from gp_active_sensing import cli
from gp_active_sensing.config import from_mapping
from gp_active_sensing.planning import policies
from gp_active_sensing.ros.launches import LAUNCHES
from gp_active_sensing.topology import MapConfig, build_topology
from tests import page_tables
from tests.page_checks import check_arguments
from tests.pages import PACKAGE, REPOSITORY, steps
from tests.reader import Reader

if not (REPOSITORY / "Makefile").exists():
    pytest.skip("the package lies outside its repository", allow_module_level=True)

_CLI = "gp-active-sensing "
HIDDEN = {"build", "install", "log", ".venv", ".pytest_cache"}
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/*.md", "ros_ws/src/*/**/*.md")
    for page in REPOSITORY.glob(pattern)
    if not HIDDEN & set(page.relative_to(REPOSITORY).parts)
)
PLAYED = {"first_robot.md": "tests/ros/test_first_robot.py"}
"""Pages with more than one terminal, and who plays them."""

EACH_COMMIT = [REPOSITORY / name for name in ("README.md", "docs/install.md", "docs/choosing.md")]
"""Pages executed by every `make test`; `make test-long` executes the others too."""


def executed() -> Iterator[Any]:
    """Yield the pages with commands, with the markers of what their steps need."""
    for page in PAGES:
        found = [step for step in steps(page) if not step.excuse]
        if page.name in PLAYED or not found:
            continue
        marks = [] if page in EACH_COMMIT else [pytest.mark.long]
        if any(step.starts_nodes for step in found):
            marks.append(pytest.mark.ros)
        yield pytest.param(page, marks=[pytest.mark.slow, *marks], id=page.name)


@pytest.mark.parametrize("page", list(executed()))
def test_a_reader_can_do_this(page: Path, tmp_path: Path) -> None:
    """Do every step of a page in an empty folder; a step whose library is missing is left out."""
    reader, failures = Reader(page, tmp_path), []
    for step in steps(page):
        if not step.excuse:
            try:
                reader.play(step)
            except pytest.skip.Exception:
                continue
            except (Exception, pytest.fail.Exception) as error:
                failures.append(f"{step.where}: {error}")
    assert not failures, "\n\n".join(failures)


def spans() -> Iterator[tuple[Path, str]]:
    """Yield (page, text) of what stands between backquotes, outside blocks."""
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        yield from ((page, span) for span in re.findall(r"`([^`\n]+)`", text))


def test_commands_in_the_text_exist() -> None:
    for page, span in spans():
        words = span.split()
        match words:
            case ["gp-active-sensing", name, *rest] if name != "…":
                words = shlex.split(span)
                group = cli.cli.get_command(click.Context(cli.cli), name)
                inner = [w for w in rest[:1] if w in getattr(group, "commands", {})]
                shown = CliRunner().invoke(cli.cli, [name, *inner, "--help"])
                assert shown.exit_code == 0, f"{page.name}: {span}"
                for word in (w for w in rest if w.startswith("--")):
                    assert word in shown.output, f"{page.name}: {word} is no option of {name}"
            case ["make", target, *_] if re.fullmatch("[a-z]+", target):
                makefile = (REPOSITORY / "Makefile").read_text()
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name}: {span}"
            case ["ros2", "launch", "gp_active_sensing", file, *arguments] if "<" not in file:
                check_arguments(file.removesuffix(".launch.py"), arguments)


def test_links_lead_somewhere() -> None:
    link = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
    found = [(page, *parts) for page in PAGES for parts in link.findall(page.read_text("utf-8"))]
    for page, target, anchor in found:
        if "://" in target:
            continue
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name} links to {target}#{anchor}"


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: dict[str, int] = {}
    names = []
    for heading in re.findall(r"^#+ (.+?)\s*$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        names.append(f"{name}-{found[name]}" if found[name] else name)
    return frozenset(names)


def test_cited_works_are_listed() -> None:
    listed = set(re.findall(r"@\w+\{(\w+),", (REPOSITORY / "docs" / "refs.bib").read_text("utf-8")))
    sources = [*PAGES, *(PACKAGE / "gp_active_sensing").rglob("*.py")]
    for source in sources:
        for group in re.findall(r"\[([A-Z][a-z]+\d{4}[^\]]*)\]", source.read_text("utf-8")):
            for key in re.findall(r"[A-Z][a-z]+\d{4}", group):
                assert key in listed, f"{source.name} cites {key}"


def test_every_policy_is_in_the_page_on_choosing_one() -> None:
    page = (REPOSITORY / "docs" / "choosing.md").read_text("utf-8")
    table = page.split("## The policies")[1].split("##")[0]
    built_in = {name for name in policies if name not in policies.plugins()}
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == built_in


def test_the_grid_of_the_shipped_parameters_is_one() -> None:
    text = (PACKAGE / "config" / "probe.yaml").read_text("utf-8")
    keys = ("columns", "rows", "spacing", "origin", "neighbours", "frame")
    for key in keys:
        text, found = re.subn(rf"# {key}: ", f"{key}: ", text)
        assert found == 1, f"config/probe.yaml has no {key} to take the comment sign away of"
    section = yaml.safe_load(text)["/**"]["ros__parameters"]["map"] | {"kind": "grid"}
    grid = build_topology(from_mapping(MapConfig, section))
    assert (grid.n, grid.frame) == (section["columns"] * section["rows"], section["frame"])


def test_generated_parts_are_current() -> None:
    text = page_tables.PAGE.read_text("utf-8")
    told = "docs/ros.md is stale; in the package's folder: python -m tests.page_tables"
    assert text == page_tables.written_anew(text), told


def test_every_argument_and_parameter_is_on_a_page() -> None:
    parts = set(page_tables.parts(page_tables.PAGE.read_text("utf-8")))
    assert {f"launch {name}" for name in ("common", *LAUNCHES)} <= parts
    others = {f"parameters {name}" for name in page_tables.NODES} - parts
    assert others == {"parameters active_sensing"}
    sections = [part for part in parts if part.startswith("parameters active_sensing ")]
    written = page_tables.keys("".join(map(page_tables.generated, sections)))
    assert len(written) == len(set(written))
    assert set(written) == set(page_tables.keys(page_tables.generated(*others)))
