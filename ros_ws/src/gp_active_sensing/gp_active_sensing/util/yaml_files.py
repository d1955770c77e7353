"""Load and write YAML files, and apply overrides.

The reader limits the bytes, nodes and depth of a file. An alias counts as much as the content that
it repeats. The writer escapes names from files and from the network: they cannot end a comment or
become a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from gp_active_sensing.errors import ConfigError, brief_repr, one_line
from gp_active_sensing.util.files import open_file

MOST_BYTES = 2 * 2**20
"""Largest size of a file [bytes]."""
MOST_NODES = 100_000
"""Largest number of mappings, lists, keys and values, including repetitions by aliases."""
MOST_DEPTH = 50
"""Largest depth of nested mappings and lists."""
MOST_ALIASES = 1000
MOST_NUMBER = 300
"""Largest number of characters in a number or a date."""
_TEXT = "tag:yaml.org,2002:str"
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_NO_STRINGS = frozenset("y yes n no on off true false null nan inf infinity".split())
"""Words that YAML or rcl reads as a truth value or a number."""


class _Loader(yaml.SafeLoader):
    """YAML loader that refuses code, custom tags, repeated keys and too much content."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = self._aliases = self._depth = self._deepest = 0
        self._known: dict[str, tuple[int, int]] = {}
        """For each anchor that is read completely: number of nodes and depth of its content."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node. Raises YAMLError if a limit is exceeded."""
        event = cast("Any", self.peek_event())  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self._alias(str(event.anchor), line)
            return super().compose_node(parent, index)
        before, deepest = self._nodes, self._deepest
        self._deepest = 0
        self._depth += 1
        self._count(1, 0, line)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if event.anchor is not None:
            self._known[event.anchor] = (self._nodes - before, self._deepest - self._depth)
        self._deepest = max(deepest, self._deepest)
        if isinstance(node, yaml.ScalarNode):
            _check_scalar(node, line)
        return node

    def _alias(self, anchor: str, line: int) -> None:
        self._aliases += 1
        if self._aliases > MOST_ALIASES:
            raise _LimitError(line, f"expected at most {MOST_ALIASES} aliases")
        if anchor in self._known:
            self._count(*self._known[anchor], line)
        elif anchor in self.anchors:
            raise _LimitError(line, f"*{anchor:.40} stands within what it stands for")

    def _count(self, nodes: int, depth: int, line: int) -> None:
        self._nodes += nodes
        self._deepest = max(self._deepest, self._depth + depth)
        if self._nodes > MOST_NODES:
            detail = ", those that aliases stand for counted each time" if self._aliases else ""
            raise _LimitError(line, f"expected at most {MOST_NODES} keys and values{detail}")
        if self._deepest > MOST_DEPTH:
            raise _LimitError(
                line, f"expected at most {MOST_DEPTH} mappings and lists in each other"
            )

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    line = key.start_mark.line + 1
                    name = brief_repr(key.value)
                    msg = f"key {name} is given twice, the second time in line {line}"
                    raise yaml.YAMLError(msg)
                seen.add(key.value)
        return cast("dict[Any, Any]", super().construct_mapping(node, deep=deep))


class _LimitError(yaml.YAMLError):
    def __init__(self, line: int, expected: str) -> None:
        super().__init__(f"line {line}: {expected}")


def _check_scalar(node: yaml.ScalarNode, line: int) -> None:
    if node.tag != _TEXT and len(node.value) > MOST_NUMBER:
        expected = f"expected at most {MOST_NUMBER} characters of a number or a date"
        raise _LimitError(line, f"{expected}, got {len(node.value)}; quote what is text")
    try:
        node.value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _LimitError(line, "half a character (a lone surrogate) in a text") from error


def read_text(path: Path) -> str:
    """Return the text of a configuration file.

    Raises:
        ConfigError: the file cannot be read, is not UTF-8, or is too large.
    """
    try:
        with open_file(path) as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            msg = f"is too large: expected at most {MOST_BYTES >> 20} MiB"
            raise ConfigError(msg, source=str(path))
        return data.decode("utf-8")
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise ConfigError(msg, source=str(path)) from error
    except UnicodeDecodeError as error:
        msg = f"cannot be read: is no text in UTF-8 ({error.reason} at byte {error.start})"
        raise ConfigError(msg, source=str(path)) from error


def parse_yaml(text: str, *, source: str = "") -> Any:
    """Return the plain data of a YAML text; `source` names its origin in errors.

    Raises:
        ConfigError: the text is not YAML, or exceeds a limit.
    """
    try:
        _check_length(text)
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, ArithmeticError) as error:  # a date such as 2024-13-45
        raise _no_yaml(error, source) from error


def compose_documents(text: str, *, source: str = "") -> list[yaml.Node]:
    """Return the documents of a YAML text as nodes with line numbers. Raises ConfigError."""
    try:
        _check_length(text)
        return list(yaml.compose_all(text, Loader=_Loader))
    except (yaml.YAMLError, ValueError) as error:
        raise _no_yaml(error, source) from error


def _check_length(text: str) -> None:
    if len(text) > MOST_BYTES:
        msg = f"expected at most {MOST_BYTES >> 20} MiB"
        raise yaml.YAMLError(msg)


def _no_yaml(error: Exception, source: str) -> ConfigError:
    detail = f"{' '.join(str(error).split()):.300}"
    if isinstance(error, _LimitError):
        return ConfigError(f"holds too much: {detail}", source=source)
    return ConfigError(f"is not valid YAML: {detail}", source=source)


def load_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises:
        ConfigError: the file cannot be read, is not YAML, exceeds a limit, or is no mapping.
    """
    data = parse_yaml(read_text(path), source=str(path))
    if not isinstance(data, dict):
        msg = f"expected a mapping at the top, got {type(data).__name__}"
        raise ConfigError(msg, source=str(path))
    return cast("dict[str, Any]", data)


def apply_overrides(mapping: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return a copy of nested data with ``a.b=value`` overrides applied; values are YAML.

    Raises:
        ConfigError: an override has no '=', or a parent key is not a mapping.
    """
    result: dict[str, Any] = _copy(mapping)
    problems: list[str] = []
    for override in overrides:
        key, equals, text = override.partition("=")
        place = f"override {brief_repr(override)}"
        if not equals or not key.strip():
            problems.append(f"{place}: expected KEY=VALUE, such as policy.horizon=3")
            continue
        try:
            value = parse_yaml(text)
        except ConfigError as error:
            what = "" if "too much" in str(error) else f"{brief_repr(text)} is not a YAML value: "
            problems.append(f"{place}: {what}{error}")
            continue
        target = result
        *parents, last = key.strip().split(".")
        if len(parents) >= MOST_DEPTH:
            problems.append(f"{place}: expected at most {MOST_DEPTH} keys in each other")
            continue
        for parent in parents:
            inner = target.setdefault(parent, {})
            if not isinstance(inner, dict):
                problems.append(f"{place}: {brief_repr(parent)} is a value, not a section")
                break
            target = inner
        else:
            target[last] = value
    if problems:
        raise ConfigError(problems)
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _copy(v) for k, v in value.items()}
    return value


def comment(text: str) -> str:
    """Return text as a one-line YAML comment."""
    return f"# {one_line(text)}".rstrip()


def scalar(value: Any) -> str:
    """Return a value as one line of YAML 1.1; a nested list becomes JSON text."""
    if isinstance(value, list | tuple):
        if any(isinstance(item, list | tuple) for item in value):
            return _quoted(json.dumps(value))
        return f"[{', '.join(scalar(item) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _NO_STRINGS
        return value if plain else _quoted(value)
    return json.dumps(value)


def check_meaning(text: str, meant: Any, *, what: str) -> None:
    """Check that a YAML text is read as the data `meant`.

    A list that contains lists must be in the YAML as JSON text. `what` names the text in the error.

    Raises:
        ConfigError: the parser reads other data.
    """
    try:
        found = parse_yaml(text)
    except ConfigError as error:
        msg = f"{what}: cannot be written as YAML: {one_line(str(error))}"
        raise ConfigError(msg) from None
    if not _same(found, meant):
        msg = f"{what}: cannot be written as YAML: it would be read with other keys or values"
        raise ConfigError(msg)


def _same(found: Any, meant: Any) -> bool:
    if isinstance(meant, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(meant)
            and all(_same(found[key], value) for key, value in meant.items())
        )
    if isinstance(meant, list | tuple):
        if any(isinstance(item, list | tuple) for item in meant):
            return bool(found == json.dumps(meant))
        return (
            isinstance(found, list) and len(found) == len(meant) and all(map(_same, found, meant))
        )
    return type(found) is type(meant) and bool(found == meant)


def _quoted(text: str) -> str:
    return '"' + one_line(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _number(value: float) -> str:
    """Return a number with a decimal point, because YAML 1.1 reads 1e-05 as text."""
    mantissa, exponent, power = repr(value).partition("e")
    if not exponent:
        return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(mantissa, mantissa)
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{power}"
