"""A number in a message of any type, by the path of its field."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gp_active_sensing.errors import ConfigError, suggest

__all__ = ["FieldPath", "MessageTypes", "split_type_name"]

_TYPE_NAME = re.compile(r"^([a-z][a-z0-9_]*)/(?:msg/)?([A-Z][A-Za-z0-9]*)$")
_STEP = re.compile(r"^([A-Za-z][A-Za-z0-9_]*)((?:\[-?\d+\])*)$")
_ELEMENT = re.compile(r"^(?:sequence<(.+?)(?:, *\d+)?>|(.+)\[\d+\])$")
_NUMBERS = re.compile(r"^(?:u?int(?:8|16|32|64)|float|double|octet|boolean|long double)$")


class MessageTypes(Protocol):
    """Knows what message types look like: those of an installed ROS, or those of a bag."""

    def fields(self, name: str) -> Mapping[str, str]:
        """Return the fields of a type with their types, such as ``sequence<float>``.

        Args:
            name: ``package/msg/Name`` or ``package/Name``.

        Raises:
            ConfigError: not a type name, or no such message.
            MissingDependencyError: the package is not installed.
        """
        ...


def split_type_name(name: str) -> tuple[str, str]:
    """Return package and name of a message type such as ``sensor_msgs/msg/Temperature``.

    Raises:
        ConfigError: not a type name.
    """
    match = _TYPE_NAME.match(name)
    if match is None:
        msg = f"message type {name!r}: expected package/msg/Name, such as sensor_msgs/msg/Imu"
        raise ConfigError(msg)
    return match[1], match[2]


@dataclass(frozen=True)
class FieldPath:
    """Where a number is inside a message: ``twist.twist.linear.x``, ``data[3]``, ``ranges[-1]``.

    Checked against the message type before the first message comes; only the length of an
    array is not known until then.
    """

    text: str
    steps: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def parse(cls, text: str, type: str, types: MessageTypes, key: str = "field") -> FieldPath:
        """Return the path, checked against a message type.

        Args:
            text: the path.
            type: name of the message type.
            types: knows it, and those inside it.
            key: what the path is for, in messages.

        Raises:
            ConfigError: not a path, an unknown field (with the nearest), or not a number.
        """
        where = f"{key}: {text!r} of {type}"
        steps: list[tuple[str, tuple[int, ...]]] = []
        now: str | None = type
        kind = ""
        for part in text.split("."):
            match = _STEP.match(part)
            if match is None:
                msg = f"{where}: expected names separated by dots, with [i] for an array element"
                raise ConfigError(msg)
            name, indices = match.group(1), tuple(int(i) for i in re.findall(r"-?\d+", match[2]))
            if now is None:
                msg = f"{where}: {steps[-1][0]!r} is a {kind}, it has no field {name!r}"
                raise ConfigError(msg)
            fields = types.fields(now)
            if name not in fields:
                hint = suggest(name, fields)
                msg = f"{where}: no field {name!r}.{hint} Known: {', '.join(fields)}"
                raise ConfigError(msg)
            kind = fields[name]
            for _ in indices:
                kind = _element(kind, f"{where}: {name!r}")
            now = kind if _TYPE_NAME.match(kind) else None
            steps.append((name, indices))
        if not _NUMBERS.match(kind):
            hint = " Add [i] for one element" if _ELEMENT.match(kind) else " Name a field of it"
            msg = f"{where}: expected a number, the field is a {kind}.{hint}"
            raise ConfigError(msg)
        return cls(text, tuple(steps))

    def read(self, message: Any) -> float:
        """Return the number; NaN when an array of this message is too short, or it is empty."""
        value = message
        for name, indices in self.steps:
            value = getattr(value, name)
            for index in indices:
                if not -len(value) <= index < len(value):
                    return math.nan
                value = value[index]
        if isinstance(value, bytes):  # an octet
            return float(value[0]) if value else math.nan
        return float(value)

    def write(self, message: Any, value: float) -> None:
        """Set a number in a message (of a simulated sensor)."""
        target = message
        for name, indices in self.steps[:-1]:
            target = getattr(target, name)
            for index in indices:
                target = target[index]
        name, indices = self.steps[-1]
        if indices:
            array = getattr(target, name)
            for index in indices[:-1]:
                array = array[index]
            array[indices[-1]] = type(array[indices[-1]])(value)
        else:
            setattr(target, name, type(getattr(target, name))(value))


def _element(kind: str, where: str) -> str:
    match = _ELEMENT.match(kind)
    if match is None:
        msg = f"{where} is a {kind}, not an array; leave the [i] out"
        raise ConfigError(msg)
    return match.group(1) or match.group(2)
