"""The generated parts of docs/ros.md.

``python -m tests.page_tables`` writes them again. A part is named by one of

``parameters NODE``            all parameters of a node
``parameters NODE SECTION …``  those of some sections, such as ``map``; ``-`` for those of none
``launch common``              the arguments that all launch files have
``launch NAME``                what a launch file starts, and its further arguments
"""

from __future__ import annotations

import re
import typing
from typing import Any

from gp_active_sensing.planning import DEFAULT_POLICY, policies
from gp_active_sensing.ros.launches import LAUNCHES, declarations, read_arguments
from gp_active_sensing.ros.parameters import NODES
from tests.key_tables import key_table, shortened
from tests.pages import REPOSITORY

PAGE = REPOSITORY / "docs" / "ros.md"
_POLICY = policies.factory(DEFAULT_POLICY["name"])
_PART = re.compile(r"(<!-- generated: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_KEY = re.compile(r"^\| `([\w.]+)` \|", re.MULTILINE)


def generated(what: str) -> str:
    """Return a generated part by its name, such as "launch probe"."""
    kind, name, *sections = what.split()
    if kind == "parameters":
        return f"\n{_parameters(name, sections)}\n\n"
    rows = [_arguments(launch) for launch in LAUNCHES]
    common = [row for row in rows[0] if all(row in others for others in rows)]
    if name == "common":
        return _table(common)
    launch = LAUNCHES[name]
    given = {"bag": "bag"} if name == "replay" else {}
    processes = read_arguments(launch, given, strict=True).processes()
    nodes = ", ".join(f"`{process.name}`" for process in processes)
    own = [row for row in _arguments(name) if row not in common]
    return f"\n`{name}.launch.py`: {launch.__doc__} It starts {nodes}.\n{_table(own)}"


def keys(text: str) -> list[str]:
    return _KEY.findall(text)


def _parameters(node: str, sections: list[str]) -> str:
    head, line, *rows = key_table(NODES[node], {"policy": _POLICY}).splitlines()
    if sections:
        rows = [row for row in rows for key in keys(row) if _section(key) in sections]
    return "\n".join([head, line, *rows])


def _section(key: str) -> str:
    return key.split(".")[0] if "." in key else "-"


def _table(rows: list[str]) -> str:
    head = "| argument | default | values | meaning |\n| --- | --- | --- | --- |"
    return "\n".join(["", head, *rows, "", ""])


def _arguments(name: str) -> list[str]:
    kind = LAUNCHES[name]
    hints = typing.get_type_hints(kind)
    return [_row(argument, hints[argument["name"]]) for argument in declarations(kind)]


def _row(argument: dict[str, Any], hint: Any) -> str:
    kinds = {str: "text", int: "whole number", float: "number", bool: "true, false"}
    kind = next(kinds[option] for option in (hint, *typing.get_args(hint)) if option in kinds)
    values = ", ".join(argument.get("choices", [])[1:]) or kind
    if argument["name"] == "policy":
        values = "a [policy](choosing.md#the-policies)"
    given = argument.get("default_value")
    default = "required" if given is None else f"`{given}`" if given else ""
    help_ = re.sub("(that ships with the package): .*", r"\1", shortened(argument["description"]))
    return f"| `{argument['name']}` | {default} | {values} | {help_} |"


def parts(text: str) -> list[str]:
    return [part[2] for part in _PART.finditer(text)]


def written_anew(text: str) -> str:
    """Return the page with every generated part as it should be."""
    return _PART.sub(lambda part: part[1] + generated(part[2]) + part[4], text)


def main() -> None:
    PAGE.write_text(written_anew(PAGE.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
