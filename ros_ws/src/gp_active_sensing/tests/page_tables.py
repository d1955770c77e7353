"""The generated parts of docs/ros.md; ``python -m tests.page_tables`` writes them again."""

from __future__ import annotations

import re
import typing
from typing import Any

from gp_active_sensing.commands.reference import key_table
from gp_active_sensing.planning import DEFAULT_POLICY, policies
from gp_active_sensing.ros.launching import declarations
from gp_active_sensing.ros.parameters import NODES
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
    given = {"bag": "bag"} if name == "replay" else {}
    nodes = ", ".join(f"`{process.name}`" for process in launch.resolve(given))
    hints = typing.get_type_hints(launch.arguments)
    rows = "\n".join(_row(a, hints[a["name"]]) for a in declarations(launch.arguments))
    return (
        f"\n`{name}.launch.py`: {launch.help}. It starts {nodes}.\n\n"
        f"| argument | default | values | meaning |\n| --- | --- | --- | --- |\n{rows}\n\n"
    )


def _row(argument: dict[str, Any], hint: Any) -> str:
    kinds = {str: "text", int: "whole number", float: "number", bool: "true, false"}
    kind = next(kinds[option] for option in (hint, *typing.get_args(hint)) if option in kinds)
    values = ", ".join(argument.get("choices", [])[1:]) or kind
    if argument["name"] == "policy":
        values = "a [policy](choosing.md#the-policies)"
    given = argument.get("default_value")
    default = "required" if given is None else f"`{given}`" if given else ""
    # What ships is listed where it is described.
    help_ = re.sub("(that ships with the package): [^;]*", r"\1", argument["description"])
    return f"| `{argument['name']}` | {default} | {values} | {help_} |"


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
