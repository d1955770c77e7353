"""Message classes of the installed ROS by their names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from gp_active_sensing.errors import ConfigError, MissingDependencyError, suggest
from gp_active_sensing.messages.field_path import split_type_name

__all__ = ["RosTypes", "find_message_type", "type_name"]


def find_message_type(name: str) -> Any:
    """Return a message class by its name, such as ``sensor_msgs/msg/Temperature``.

    Raises:
        ConfigError: not a type name, or no such message in the package.
        MissingDependencyError: the package is not installed.
    """
    package, short = split_type_name(name)
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


def type_name(message_type: Any) -> str:
    """Return the name of a message class, as in ``sensor_msgs/msg/Temperature``."""
    return f"{message_type.__module__.split('.')[0]}/msg/{message_type.__name__}"


class RosTypes:
    """The message types of the installed ROS (`messages.field_path.MessageTypes`)."""

    def fields(self, name: str) -> Mapping[str, str]:
        """Return the fields of a type; see the protocol."""
        return dict(find_message_type(name).get_fields_and_field_types())
