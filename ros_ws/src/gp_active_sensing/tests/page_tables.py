"""The generated parts of docs/ros.md; ``python -m tests.page_tables`` writes them again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gp_active_sensing.commands.reference import key_table
from gp_active_sensing.mission.names import numbered
from gp_active_sensing.planning import DEFAULT_POLICY, policies
from gp_active_sensing.ros.launching import Argument
from gp_active_sensing.ros.node_configs import NODES
from gp_active_sensing.ros.runner import read_launch
from tests.pages import REPOSITORY

__all__ = ["NODES", "PAGE", "SECTIONS", "generated", "parts", "written_anew"]

PAGE = REPOSITORY / "docs" / "ros.md"
SECTIONS = {"policy": policies.factory(DEFAULT_POLICY["name"])}
_PART = re.compile(r"(<!-- generated: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def generated(what: str) -> str:
    """Return a generated part by its name, such as "launch probe"."""
    kind, name = what.split()
    if kind == "parameters":
        return f"\n{key_table(NODES[name], sections=SECTIONS)}\n\n"
    launch = read_launch(name)
    given = {argument.name: "bag" for argument in launch.arguments if argument.required}
    nodes = ", ".join(f"`{process.name}`" for process in launch.resolve(given))
    rows = "\n".join(_row(argument) for argument in launch.arguments)
    return (
        f"\n`{name}.launch.py`: {launch.help}. It starts {nodes}.\n\n"
        f"| argument | default | values | meaning |\n| --- | --- | --- | --- |\n{rows}\n\n"
    )


def _row(argument: Argument) -> str:
    words: dict[Callable[[str], Any], str] = {
        str: "text",
        int: "whole number",
        float: "number",
        bool: "true, false",
        numbered: "whole number, or names",
    }
    values = ", ".join(argument.choices) or words[argument.kind]
    default = "required" if argument.required else f"`{argument.default}`" * bool(argument.default)
    # What ships is listed where it is described.
    help_ = argument.help.split(" that ships with the package:")[0]
    help_ += " that ships with the package" * (help_ != argument.help)
    return f"| `{argument.name}` | {default} | {values} | {help_} |"


def parts(text: str) -> list[str]:
    """Return the names of the generated parts of a page."""
    return [part[2] for part in _PART.finditer(text)]


def written_anew(text: str) -> str:
    """Return the page with every generated part as it should be."""
    return _PART.sub(lambda part: part[1] + generated(part[2]) + part[4], text)


def main() -> None:
    """Write the page."""
    PAGE.write_text(written_anew(PAGE.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
