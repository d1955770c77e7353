"""Write YAML by hand: comments, values, and a check that a parser reads back what was meant.

Frames, topics, units and names come from files and from the network. Text with a line break must
neither end a comment nor become a key, so every comment and every value is written here.
"""

from __future__ import annotations

import json
import re
from typing import Any

from gp_active_sensing.errors import ConfigError, one_line
from gp_active_sensing.util.yaml_files import parse_yaml

__all__ = ["check_meaning", "comment", "scalar"]

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_NO_STRINGS = frozenset("y yes n no on off true false null nan inf infinity".split())
"""Words that YAML or rcl reads as a truth value or a number."""


def comment(text: str) -> str:
    """Return text as one comment."""
    return f"# {one_line(text)}".rstrip()


def scalar(value: Any) -> str:
    """Return a value in one line, as YAML 1.1 and rcl read it.

    A list within a list becomes text with JSON, since ROS parameters have flat lists only.
    """
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
    """Check that written YAML has the keys and values that were meant, and no others.

    Args:
        text: the written YAML.
        meant: the data; a list within a list stands for its JSON text.
        what: the name of the text in the error.

    Raises:
        ConfigError: a parser reads something else.
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
    """Return text in double quotes, with the escapes of YAML."""
    return '"' + one_line(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _number(value: float) -> str:
    """Return a number with a point, without which YAML 1.1 reads 1e-05 as text."""
    mantissa, exponent, power = repr(value).partition("e")
    if not exponent:
        return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(mantissa, mantissa)
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{power}"
