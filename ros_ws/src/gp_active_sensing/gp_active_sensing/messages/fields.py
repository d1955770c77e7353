"""The numbers that messages of a type hold, each by its path."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.messages.conversions import NUMBERS, MessageTypes, element_of

__all__ = ["number_paths", "value_path"]

_DEEPEST = 4
_ASIDE = re.compile(r"variance|covariance|status|header|stamp|seq", re.IGNORECASE)


def number_paths(type: str, types: MessageTypes) -> list[str]:
    """Return the paths of the numbers in a message, without those of its header.

    Args:
        type: name of the message type.
        types: knows it, and those inside it.

    Returns:
        Paths such as ``temperature`` and ``ranges[0]``: of an array its first element.

    Raises:
        ConfigError, MissingDependencyError: a type that is not known.
    """
    types.fields(type)
    return list(_paths(type, types, "", 0))


def value_path(paths: list[str]) -> str:
    """Return the path of what a sensor measures, "" when it could be one or another."""
    likely = [path for path in paths if not _ASIDE.search(path)]
    return likely[0] if len(likely) == 1 else ""


def _paths(type: str, types: MessageTypes, prefix: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    try:
        fields = types.fields(type)
    except ActiveSensingError:  # a part of another package, which is not installed
        return
    for name, kind in fields.items():
        if kind == "std_msgs/Header":
            continue
        element = element_of(kind)
        path, inner = (f"{prefix}{name}[0]", element) if element else (f"{prefix}{name}", kind)
        if NUMBERS.match(inner):
            yield path
        elif "/" in inner:
            yield from _paths(inner, types, f"{path}.", depth + 1)
