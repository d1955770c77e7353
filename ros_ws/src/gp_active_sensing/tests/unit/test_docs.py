"""The pages say what is true: blocks run, commands and options exist, links lead somewhere."""

from __future__ import annotations

import ast
import functools
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
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
from gp_active_sensing.sim import load_scenario, run_scenario
from gp_active_sensing.topology import MapConfig, build_topology
from tests import page_tables
from tests.heavy import extra_of
from tests.page_checks import check_arguments
from tests.pages import (
    BENCH,
    LANGUAGES,
    NOT_EXECUTED,
    PACKAGE,
    REPOSITORY,
    Step,
    blocks,
    modules,
    steps,
)
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
STEPS = [step for page in PAGES if page.name not in PLAYED for step in steps(page)]


def identify(value: object) -> str:
    return value.where if isinstance(value, Step) else str(getattr(value, "name", value))


def marks(step: Step) -> list[pytest.MarkDecorator]:
    heavy = sorted(filter(None, map(extra_of, modules(step))))
    nodes = step.starts_nodes or step.after_nodes
    return [pytest.mark.heavy(extra) for extra in heavy] + [pytest.mark.ros] * nodes


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Reader]]:
    readers: dict[Path, Reader] = {}
    shared: dict[tuple[str, ...], tuple[str, Path | None]] = {}

    def reader_of(page: Path) -> Reader:
        if page not in readers:
            readers[page] = Reader(page, tmp_path_factory.mktemp(page.stem), shared)
        return readers[page]

    return reader_of


@pytest.mark.slow  # whatever a block is, the commands above it are run first
@pytest.mark.parametrize(
    "step",
    [pytest.param(step, marks=marks(step)) for step in STEPS if not step.excuse],
    ids=identify,
)
def test_a_reader_can_do_this(step: Step, reader: Callable[[Path], Reader]) -> None:
    reader(step.page).play(step)


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_blocks_say_their_language(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, (
            f"{block.where}: expected one of {sorted(LANGUAGES)} after the fence, "
            f"got {block.language!r}; what is plain text is `text`"
        )


def test_every_page_that_is_played_elsewhere_is() -> None:
    names = {page.name for page in PAGES}
    for page, test in PLAYED.items():
        assert page in names
        assert page in (PACKAGE / test).read_text("utf-8")


def test_every_excuse_is_used() -> None:
    used = {b for s in STEPS for b in NOT_EXECUTED if f"{s.text} ".startswith(f"{b} ")}
    assert set(NOT_EXECUTED) == used


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_commands_in_the_text_exist(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for span in re.findall(r"`([^`\n]+)`", text):
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


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name} links to {target}#{anchor}"


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub and GitLab make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: dict[str, int] = {}
    names = []
    for heading in re.findall(r"^#+ (.+?)\s*$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        names.append(f"{name}-{found[name]}" if found[name] else name)
    return frozenset(names)


def test_promised_files_exist() -> None:
    table = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 15
    for name in names:
        assert (PACKAGE / "gp_active_sensing" / name).exists(), name


def test_cited_works_are_listed() -> None:
    listed = set(re.findall(r"@\w+\{(\w+),", (REPOSITORY / "docs" / "refs.bib").read_text("utf-8")))
    sources = [*PAGES, *(PACKAGE / "gp_active_sensing").rglob("*.py")]
    for source in sources:
        for group in re.findall(r"\[([A-Z][a-z]+\d{4}[^\]]*)\]", source.read_text("utf-8")):
            for key in re.findall(r"[A-Z][a-z]+\d{4}", group):
                assert key in listed, f"{source.name} cites {key}"


def test_every_extra_is_on_the_page_on_installing() -> None:
    extras = (
        (PACKAGE / "setup.py")
        .read_text("utf-8")
        .split("extras_require={")[1]
        .split("entry_points")[0]
    )
    names = set(re.findall(r"^ {8}\"(\w+)\": \[", extras, re.MULTILINE))
    assert {"ros", "bag"} <= names
    page = (REPOSITORY / "docs" / "install.md").read_text("utf-8").split("## Extras")[1]
    told = set(re.findall(r"^\| `\[(\w+)\]` \|", page, re.MULTILINE))
    assert told == names - {"test", "dev"}


def test_every_policy_is_in_the_page_on_choosing_one() -> None:
    page = (REPOSITORY / "docs" / "choosing.md").read_text("utf-8")
    table = page.split("## The policies")[1].split("##")[0]
    built_in = {name for name in policies if name not in policies.plugins()}
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == built_in


def test_measured_figures_come_from_a_report() -> None:
    reports = [*PACKAGE.glob("benchmarks/reports/*.md"), *BENCH.glob("experiments/results/*.md")]
    measured = "\n".join(report.read_text("utf-8") for report in reports)
    page = (REPOSITORY / "docs" / "choosing.md").read_text("utf-8")
    figures = re.findall(r"\d+\.\d+ ± \d+\.\d+", page)
    assert len(figures) > 10
    for figure in figures:
        assert figure in measured, f"choosing.md says {figure}; no report does"


@pytest.mark.slow
def test_the_shipped_limit_closes_its_decisions(tmp_path: Path) -> None:
    page = " ".join((REPOSITORY / "docs" / "choosing.md").read_text("utf-8").split())
    said = re.search(r"allows (\d+) expansions: that closes all of its (\d+) decisions", page)
    assert said is not None, "choosing.md says no more how many decisions the shipped limit closes"
    town = load_scenario("town", overrides=["budget.readings=20"])
    shipped = load_scenario("town")
    assert (shipped.limit.expansions, shipped.budget.readings) == tuple(map(int, said.groups()))
    stages: list[Mapping[str, Any]] = []
    run_scenario(town, tmp_path / "run", on_stage=stages.append)
    wide = [stage for stage in stages if stage["upper"] - stage["lower"] > 0.05]
    assert (len(stages), len(wide)) == (20, 0)


def test_a_reader_without_ros_is_told_first_where_the_commands_are() -> None:
    page = (REPOSITORY / "README.md").read_text("utf-8")
    block = next(text for text in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if _CLI in text)
    assert block.startswith(". .venv/bin/activate\n")


def test_the_grid_of_the_shipped_parameters_is_one() -> None:
    text = (PACKAGE / "config" / "probe.yaml").read_text("utf-8")
    keys = ("columns", "rows", "spacing", "origin", "neighbours", "frame")
    for key in keys:
        text, found = re.subn(rf"# {key}: ", f"{key}: ", text)
        assert found == 1, f"config/probe.yaml has no {key} to take the comment sign away of"
    section = yaml.safe_load(text)["/**"]["ros__parameters"]["map"] | {"kind": "grid"}
    grid = build_topology(from_mapping(MapConfig, section))
    assert (grid.n, grid.frame) == (section["columns"] * section["rows"], section["frame"])


@pytest.mark.parametrize("page", page_tables.PAGES, ids=identify)
def test_generated_parts_are_current(page: Path) -> None:
    text = page.read_text("utf-8")
    told = f"docs/{page.name} is stale; in the package's folder: python -m tests.page_tables"
    assert text == page_tables.written_anew(text), told


def test_every_argument_and_parameter_is_on_a_page() -> None:
    interface = set(page_tables.parts(page_tables.PAGE.read_text("utf-8")))
    assert {f"launch {name}" for name in ("common", *LAUNCHES)} <= interface
    others = {f"parameters {name}" for name in page_tables.NODES} - interface
    assert others == {"parameters active_sensing"}
    written = page_tables.keys("".join(map(page_tables.generated, parts_of_parameters())))
    assert len(written) == len(set(written))
    assert set(written) == set(page_tables.keys(page_tables.generated(*others)))


def parts_of_parameters() -> list[str]:
    return page_tables.parts(page_tables.PARAMETERS.read_text("utf-8"))


_REFUSING = ("loop.py", "engine", "topology/lookup.py", "belief", "mission", "ros")
"""Where readings are refused."""


def test_every_reason_of_a_refused_reading_is_explained() -> None:
    sources = (PACKAGE / "gp_active_sensing" / name for name in _REFUSING)
    files = [f for s in sources for f in ([s] if s.is_file() else s.rglob("*.py"))]
    text = "\n".join(file.read_text("utf-8") for file in files)
    found = set()
    for pattern in (
        r"ReadingError\(\s*\"(\w+)\"",
        r"_count\(\s*\"(\w+)\"",
        r"_reject(?:_unfinished)?\(\s*\"(\w+)\"",
        r"rejected\[\"(\w+)\"\]",
        r"reason, why = \"(\w+)\"",
        r"\{\"(\w+)\": self\.strangers",
        r"return \"(pose_\w+)\", ",
    ):
        words = set(re.findall(pattern, text))
        assert words, f"{pattern} finds nothing; the code has changed"
        found |= words
    unusable = set(re.findall(r"[^.\w]refuse\(\s*\"(\w+)\"", text))
    assert unusable, "refuse finds nothing; the code has changed"
    found |= unusable | {f"pose_{word}" for word in unusable}
    page = (REPOSITORY / "docs" / "reasons.md").read_text("utf-8")
    table = page.split("## Readings and poses")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == found


@pytest.mark.parametrize(
    ("name", "section", "least"),
    [
        ("troubleshooting.md", "# Troubleshooting", 60),
        ("reasons.md", "# Why", 2),
        ("install.md", "## When it does not install", 6),
        ("kernels.md", "## When learning does not work", 10),
    ],
)
def test_messages_are_those_of_the_code(name: str, section: str, least: int) -> None:
    """What these pages quote, in typographic quotes, is said somewhere."""
    page = (REPOSITORY / "docs" / name).read_text("utf-8")
    start = page.index(section)
    end = page.find("\n## ", start + len(section)) if section.startswith("##") else len(page)
    quotes = re.findall(r"“([^”]+)”", page[start:end])
    assert len(quotes) >= least
    said = messages()
    for quote in quotes:
        for part in " ".join(quote.split()).split("…"):
            words = part.strip(" :;,.")
            assert words in said, f"{name} quotes {quote!r}: nobody says {words!r}"


@functools.cache
def messages() -> str:
    """Return every text in the sources, those in pieces joined, … for what is filled in."""
    found = [(REPOSITORY / "tools" / "make_env.sh").read_text("utf-8")]
    for file in (PACKAGE / "gp_active_sensing").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "…" for v in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(" ".join(text.split()) for text in found)
