"""The code blocks of the pages, and what may be said about them.

What a fence says after its language:

``file=NAME``      the block is that file: it is written, and later blocks find it
``yaml scenario``  a scenario; with ``over=NAME`` a part of one, laid over a shipped scenario
``yaml parameters``  parameters of a node, laid over ``config/probe.yaml``
``yaml experiment``  an experiment
``needs=MODULE``   executed where that library of an extra is installed; what needs a file of
                   such a block, or shows its output, is skipped with it
``sh fails``       commands that end with exit code 1 or 2, and without a traceback
``sh robot``       what runs in a terminal of its own, until the next such block (first_robot.md)
``text output``    lines of what the command before it says, … standing for anything
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
REPOSITORY = PACKAGE.parents[2]
_NODES_MAKE = ("run_dir:=",)

# Commands that no test executes; each by how it begins.
NOT_EXECUTED: Mapping[str, str] = {
    "git clone": "needs the network and the address of the repository",
    "pip install": "needs the network; for a package of a page its metadata are written by hand",
    "cd": "changes the shell; what follows says where it runs",
    ".": "changes the shell",
    "ros2 bag record": "records until it is interrupted; tests/ros/test_record.py",
    "docker": "needs a registry of images; tests/unit/test_containers.py reads the Dockerfile",
    "colcon": "builds the workspace for minutes; .ci/run does it",
    "bash .ci/run": "runs these tests",
    "python benchmarks/run.py": "measures for minutes; the tests of bench run each at its smallest",
    "python3 -m venv": "needs the network",
    "sumo_env/bin/pip": "needs the network, and SUMO half a gigabyte",
    "PATH=$PWD/sumo_env/bin:$PATH": "needs SUMO",
    "sumo_env/bin/python": "needs SUMO's output",
}


@dataclass(frozen=True)
class Step:
    """A block of a page, or one command of it."""

    page: Path
    line: int
    language: str
    tags: tuple[str, ...]
    text: str
    after_nodes: bool = False
    """A command before it in the same block starts nodes, and may leave what it needs."""

    @property
    def where(self) -> str:
        ours = self.page.is_relative_to(REPOSITORY)
        return f"{self.page.relative_to(REPOSITORY) if ours else self.page.name}:{self.line}"

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    def option(self, name: str) -> str:
        found = [tag.partition("=")[2] for tag in self.tags if tag.startswith(f"{name}=")]
        return found[0] if found else ""

    @property
    def starts_nodes(self) -> bool:
        words = self.text.split()[:3] if self.language == "sh" else []
        return words == ["python", "-m", "gp_active_sensing.ros.runner"] or words[:2] == [
            "ros2",
            "launch",
        ]

    @property
    def makes(self) -> tuple[str, ...]:
        """The files and folders that it leaves in the reader's folder."""
        if self.language != "sh":
            return (name,) if (name := self.option("file")) else ()
        words = self.words
        found = [b for a, b in itertools.pairwise(words) if a in ("--out", "--report")]
        found += [word.partition(":=")[2] for word in words if word.startswith(_NODES_MAKE)]
        if words[:2] == ["gp-active-sensing", "init"]:
            found.append("mission.yaml")
        if words[1:3] == ["maps", "import"]:
            found += [word for word in words[4:] if not word.startswith("-")][:1]
        return tuple(found)

    def mentions(self, name: str) -> bool:
        """Whether a file or folder, or something in that folder, is named in the step."""
        return bool(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w-]|\.\w)", self.text))

    @property
    def own_modules(self) -> tuple[str, ...]:
        """The libraries of an extra that it needs itself."""
        needs = [module] if (module := self.option("needs")) else []
        live = "town_live" in self.text or "kind: sumo" in self.text
        return tuple(needs + ["libsumo"] * (live and self.language in ("sh", "yaml")))

    @property
    def excuse(self) -> str:
        """Why the command is not executed, "" when it is."""
        for beginning, reason in NOT_EXECUTED.items():
            if f"{self.text} ".startswith(f"{beginning} "):
                return reason
        return ""


@functools.cache
def blocks(page: Path) -> tuple[Step, ...]:
    found: list[Step] = []
    opened: tuple[int, str, str, str] | None = None
    body: list[str] = []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        fence = re.match(r"^(\s*)(`{3,}|~{3,})(.*)$", line)
        if opened is None and fence:
            opened, body = (number, fence[1], fence[2], fence[3].strip()), []
        elif opened is not None and fence and fence[2] == opened[2] and not fence[3].strip():
            language, *tags = opened[3].split() or [""]
            text = "".join(f"{row.removeprefix(opened[1])}\n" for row in body)
            found.append(Step(page, opened[0], language, tuple(tags), text))
            opened = None
        elif opened is not None:
            body.append(line)
    assert opened is None, f"{page.name}:{opened and opened[0]}: a block without an end"
    return tuple(found)


@functools.cache
def steps(page: Path) -> tuple[Step, ...]:
    """Return the blocks of a page, those of the shell one command at a time."""
    found: list[Step] = []
    for block in blocks(page):
        if block.language != "sh":
            last = found[-1] if found else None
            shown = block.language == "text" and last is not None and last.language == "sh"
            after = bool(shown and last and (last.starts_nodes or last.after_nodes))
            found.append(dataclasses.replace(block, after_nodes=after))
            continue
        number, pending, after = block.line, "", False
        for line in block.text.splitlines():
            number += 1
            pending += line.removesuffix("\\")
            if line.endswith("\\"):
                continue
            for part in pending.split("&&"):
                if part.strip() and not part.strip().startswith("#"):
                    step = Step(block.page, number, "sh", block.tags, part.strip(), after)
                    after = after or step.starts_nodes
                    found.append(step)
            pending = ""
    return tuple(found)


@functools.cache
def sources(step: Step) -> tuple[Step, ...]:
    """Return the steps before it whose file, folder or output a step needs, in their order."""
    before = list(itertools.takewhile(lambda other: other != step, steps(step.page)))
    found = [other for other in before if any(map(step.mentions, other.makes))]
    if "output" in step.tags:
        found += [other for other in before if other.language in ("sh", "python")][-1:]
    return tuple(other for other in before if other in found)


def modules(step: Step) -> frozenset[str]:
    """Return the libraries of extras that a step needs, itself or for what it starts from."""
    return frozenset(step.own_modules).union(*map(modules, sources(step)))
