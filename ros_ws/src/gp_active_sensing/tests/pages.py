"""The code blocks of the pages, and what may be said about them.

What a fence says after its language:

``file=NAME``      the block is that file: it is written, and later blocks find it
``yaml scenario``  a scenario; with ``over=NAME`` a part of one, laid over a shipped scenario
``yaml parameters``  parameters of a node, laid over ``config/probe.yaml``
``yaml experiment``  an experiment
``needs=MODULE``   executed where that library of an extra is installed
``sh fails``       commands that end with exit code 1 or 2, and without a traceback
``text output``    lines of what the command before it says, … standing for anything
"""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LANGUAGES", "NOT_EXECUTED", "PACKAGE", "REPOSITORY", "Step", "blocks", "steps"]

PACKAGE = Path(__file__).resolve().parents[1]
REPOSITORY = PACKAGE.parents[2]
LANGUAGES = {"python", "sh", "yaml", "json", "toml", "csv", "text"}

# Commands that no test executes; each by how it begins.
NOT_EXECUTED: Mapping[str, str] = {
    "git clone": "needs the network and the address of the repository",
    "pip install": "needs the network; for a package of a page its metadata are written by hand",
    "cd": "changes the shell; what follows says where it runs",
    ".": "changes the shell",
    "colcon": "builds the workspace for minutes; .ci/run does it",
    "bash .ci/run": "runs these tests",
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
    def excuse(self) -> str:
        """Why the command is not executed, "" when it is."""
        for beginning, reason in NOT_EXECUTED.items():
            if f"{self.text} ".startswith(f"{beginning} "):
                return reason
        return ""


@functools.cache
def blocks(page: Path) -> tuple[Step, ...]:
    """Return the fenced blocks of a page."""
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
