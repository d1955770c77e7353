"""Check ROS parameter files before ROS reads them, and find the node to which each key belongs.

If a list contains a list, rcl ends the process and names neither the file nor the key. rcl also
does not report whether a key is under ``/**`` or under the node's name.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.util.yaml_files import compose_documents, read_text

Problem = tuple[int, str]
"""Problem in a file: line number and text."""
_PARAMETERS = "ros__parameters"
_ORDER = f"expected the name of a node, such as /**, below it {_PARAMETERS}, below that parameters"
_TYPES = {"int": "whole numbers", "float": "numbers", "bool": "true/false", "str": "text"}
_TRUTHS = frozenset("y Y n N".split())
"""Words that are booleans for rcl, but text for Python's YAML reader."""


def check_parameter_file(path: Path, namespace: str = "") -> None:
    """Check that rcl can read a parameter file.

    If a namespace is given, each section for a node outside this namespace is also a problem, since
    ROS ignores it.

    Raises:
        ConfigError: the file has problems; the message lists lines, keys and corrections.
    """
    found = set(_aliases(path))
    if not found:
        found = {problem for root in _documents(path) for problem in _wrong_in(root)}
    if not found and namespace:
        found = {problem for root in _documents(path) for problem in _elsewhere(root, namespace)}
    problems = [f"line {line}: {text}" for line, text in sorted(found)]
    if problems:
        raise ConfigError(problems, source=str(path))


def given_files(words: Sequence[str]) -> list[Path]:
    """Return the parameter files that a node's command line names."""
    return [Path(value) for flag, value in itertools.pairwise(words) if flag == "--params-file"]


def keys_in_files(words: Sequence[str], name: str) -> dict[str, bool]:
    """Return the keys of a node that its parameter files contain.

    Returns:
        For each dotted key: True if it is under the node's name; False if it is only under a name
        for several nodes, such as ``/**``.
    """
    found: dict[str, bool] = {}
    for path in given_files(words):
        try:
            sections = [s for root in _documents(path) for s in _sections(root)]
        except ConfigError:  # rcl rejects such a file before the node starts
            continue
        for node, section in sections:
            last = node.rsplit("/", maxsplit=1)[-1]
            if last == name or last.startswith("*"):
                for key, _ in _leaves(section):
                    found[key] = last == name or found.get(key, False)
    return found


def _documents(path: Path) -> list[yaml.Node]:
    return compose_documents(read_text(path), source=str(path))


def _pairs(node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield str(key.value), key, value


def _sections(root: yaml.Node, prefix: str = "") -> Iterator[tuple[str, yaml.Node]]:
    """Yield the name of each node, and the YAML node below its ``ros__parameters``."""
    for key, _, value in _pairs(root):
        if key == _PARAMETERS:
            yield prefix, value
        else:
            yield from _sections(value, f"{prefix}/{key.lstrip('/')}")


def _leaves(section: yaml.Node, prefix: str = "") -> Iterator[tuple[str, yaml.Node]]:
    for key, _, value in _pairs(section):
        if isinstance(value, yaml.MappingNode):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _wrong_in(root: yaml.Node) -> Iterator[Problem]:
    if not isinstance(root, yaml.MappingNode):
        yield _line(root), _ORDER
        return
    yield from _outside(root)
    for _, section in _sections(root):
        if not isinstance(section, yaml.MappingNode):
            yield _line(section), f"{_PARAMETERS}: expected parameters below it, found none"
        for key, value in _leaves(section):
            if text := _problem(key, value):
                yield _line(value), text


def _outside(root: yaml.Node) -> Iterator[Problem]:
    """Yield a problem for each value that is not below ``ros__parameters``."""
    for key, at, value in _pairs(root):
        if key != _PARAMETERS and isinstance(value, yaml.MappingNode):
            yield from _outside(value)
        elif key != _PARAMETERS:
            yield _line(at), f"{key}: a value before {_PARAMETERS}: {_ORDER}"


def _elsewhere(root: yaml.Node, namespace: str) -> Iterator[Problem]:
    """Yield a problem for each section that is for a node outside the namespace."""
    inside = f"/{namespace.strip('/')}"
    for name, section in _sections(root):
        if "*" not in name and not name.startswith(f"{inside}/"):
            last = name.rsplit("/", maxsplit=1)[-1]
            text = f"{name}: is not the name of a node in namespace {inside}; write {inside}/{last}"
            yield _line(section), f"{text}, or /**/{last} for any"


def _line(node: yaml.Node | yaml.Event) -> int:
    return node.start_mark.line + 1 if node.start_mark is not None else 0


def _problem(key: str, value: yaml.Node) -> str:
    """Return why rcl cannot read the value of a parameter; "" = rcl can read it."""
    last = key.rsplit(".", maxsplit=1)[-1]
    if isinstance(value, yaml.ScalarNode):
        if value.value == "" and value.style is None:
            return f'{key}: has no value; leave the key out, or write {last}: ""'
        return ""
    if any(not isinstance(item, yaml.ScalarNode) for item in value.value):
        return (
            f"{key}: a ROS parameter file holds no list or mapping within a list; "
            f"write it as text, in quotes: {last}: {_quoted(value)}"
        )
    kinds = {_kind(item) for item in value.value}
    if kinds == {"int", "float"}:
        numbers = ", ".join(_decimal(item) for item in value.value)
        return f"{key}: whole numbers and others in one list; write {last}: [{numbers}]"
    if len(kinds) > 1:
        types = ", ".join(_TYPES[kind] for kind in sorted(kinds))
        return f"{key}: the entries of a list must be of one type, got {types}; quote what is text"
    return ""


def _kind(item: Any) -> str:
    word = item.tag.rsplit(":", maxsplit=1)[-1]
    if item.style is None and item.value in _TRUTHS:
        return "bool"
    return word if word in _TYPES else "str"


def _decimal(item: Any) -> str:
    return f"{item.value}.0" if _kind(item) == "int" else str(item.value)


def _quoted(node: yaml.Node) -> str:
    flow = yaml.serialize(_in_flow(node), Dumper=yaml.SafeDumper, width=10**6).strip()
    return f'"{flow}"' if '"' not in flow else "'" + flow.replace("'", "''") + "'"


def _in_flow(node: yaml.Node) -> yaml.Node:
    """Return the YAML node in flow style, which fits on one line."""
    if isinstance(node, yaml.SequenceNode):
        items = [_in_flow(item) for item in node.value]
        return yaml.SequenceNode(node.tag, items, flow_style=True)
    if isinstance(node, yaml.MappingNode):
        pairs = [(_in_flow(key), _in_flow(value)) for key, value in node.value]
        return yaml.MappingNode(node.tag, pairs, flow_style=True)
    return node


def _aliases(path: Path) -> Iterator[Problem]:
    text = read_text(path)
    if "*" not in text:
        return
    with contextlib.suppress(yaml.YAMLError):  # the composer reports the error
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                yield _line(event), f"*{event.anchor}: ROS knows no aliases; write the value out"
