"""A number in a message of any type: message classes by name, fields by path. No node."""

from __future__ import annotations

import importlib
import math
import re
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.errors import ConfigError, MissingDependencyError, suggest

__all__ = ["FieldPath", "find_message_type", "type_name"]

_TYPE_NAME = re.compile(r"^([a-z][a-z0-9_]*)/(?:msg/)?([A-Z][A-Za-z0-9]*)$")
_STEP = re.compile(r"^([A-Za-z][A-Za-z0-9_]*)((?:\[-?\d+\])*)$")
_ELEMENT = re.compile(r"^(?:sequence<(.+?)(?:, *\d+)?>|(.+)\[\d+\])$")
_NUMBERS = re.compile(r"^(?:u?int(?:8|16|32|64)|float|double|octet|boolean|long double)$")


def find_message_type(name: str) -> Any:
    """Return a message class by its name, such as ``sensor_msgs/msg/Temperature``.

    Raises:
        ConfigError: not a type name, or no such message in the package.
        MissingDependencyError: the package is not installed.
    """
    match = _TYPE_NAME.match(name)
    if match is None:
        msg = f"message type {name!r}: expected package/msg/Name, such as sensor_msgs/msg/Imu"
        raise ConfigError(msg)
    package, short = match.groups()
    try:
        module = importlib.import_module(f"{package}.msg")
    except ImportError as error:
        msg = (
            f"message type {name!r}: the package {package} cannot be imported ({error}); install "
            f"it (ros-$ROS_DISTRO-{package.replace('_', '-')}) and source its workspace"
        )
        raise MissingDependencyError(msg) from error
    cls = getattr(module, short, None)
    if cls is None:
        known = [n for n in dir(module) if not n.startswith("_")]
        msg = f"message type {name!r}: {package} has no message {short}.{suggest(short, known)}"
        raise ConfigError(msg)
    return cls


@dataclass(frozen=True)
class FieldPath:
    """Where a number is inside a message: ``twist.twist.linear.x``, ``data[3]``, ``ranges[-1]``.

    Checked against the message type before the first message comes; only the length of an
    array is not known until then.
    """

    text: str
    steps: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def parse(cls, text: str, message_type: Any, key: str = "field") -> FieldPath:
        """Return the path, checked against a message type.

        Raises:
            ConfigError: not a path, an unknown field (with the nearest), or not a number.
        """
        where = f"{key}: {text!r} of {type_name(message_type)}"
        steps: list[tuple[str, tuple[int, ...]]] = []
        cls_now, kind = message_type, ""
        for part in text.split("."):
            match = _STEP.match(part)
            if match is None:
                msg = f"{where}: expected names separated by dots, with [i] for an array element"
                raise ConfigError(msg)
            name, indices = match.group(1), tuple(int(i) for i in re.findall(r"-?\d+", match[2]))
            if cls_now is None:
                msg = f"{where}: {steps[-1][0]!r} is a {kind}, it has no field {name!r}"
                raise ConfigError(msg)
            fields = cls_now.get_fields_and_field_types()
            if name not in fields:
                hint = suggest(name, fields)
                msg = f"{where}: no field {name!r}.{hint} Known: {', '.join(fields)}"
                raise ConfigError(msg)
            kind = fields[name]
            for _ in indices:
                kind = _element(kind, f"{where}: {name!r}")
            cls_now = find_message_type(kind) if _TYPE_NAME.match(kind) else None
            steps.append((name, indices))
        if not _NUMBERS.match(kind):
            hint = " Add [i] for one element" if _ELEMENT.match(kind) else " Name a field of it"
            msg = f"{where}: expected a number, the field is a {kind}.{hint}"
            raise ConfigError(msg)
        return cls(text, tuple(steps))

    def read(self, message: Any) -> float:
        """Return the number; NaN when an array of this message is too short."""
        value = message
        for name, indices in self.steps:
            value = getattr(value, name)
            for index in indices:
                if not -len(value) <= index < len(value):
                    return math.nan
                value = value[index]
        return float(value[0] if isinstance(value, bytes) else value)

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


def type_name(message_type: Any) -> str:
    """Return the name of a message class, as in ``sensor_msgs/msg/Temperature``."""
    return f"{message_type.__module__.split('.')[0]}/msg/{message_type.__name__}"
