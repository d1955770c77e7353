"""Message types as a bag knows them: the standard ones, and those it carries definitions of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gp_active_sensing.errors import ConfigError, MissingDependencyError, suggest
from gp_active_sensing.messages.conversions import split_type_name

__all__ = ["BagTypes"]

_WORDS = {
    "float64": "double",
    "float32": "float",
    "bool": "boolean",
    "byte": "octet",
    "char": "uint8",
}
"""Words of message definitions that rosidl has others for."""


class BagTypes:
    """The types of a typestore of rosbags (`messages.conversions.MessageTypes`).

    Args:
        store: the typestore.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    def fields(self, name: str) -> Mapping[str, str]:
        """Return the fields of a type; see the protocol."""
        package, short = split_type_name(name)
        found = self._store.fielddefs.get(f"{package}/msg/{short}")
        if found is None:
            known = self._store.fielddefs
            if not any(other.startswith(f"{package}/") for other in known):
                msg = (
                    f"message type {name!r}: neither the bag nor the standard messages define "
                    f"anything of {package}; record with a recorder that keeps definitions (MCAP "
                    "does)"
                )
                raise MissingDependencyError(msg)
            shorts = [other.rsplit("/", 1)[1] for other in known if other.startswith(f"{package}/")]
            msg = (
                f"message type {name!r}: {package} has no message {short}.{suggest(short, shorts)}"
            )
            raise ConfigError(msg)
        return {field: _written(kind) for field, kind in found[1]}


def _written(kind: Any) -> str:
    """Return a field's type in rosidl's words, such as ``sequence<double>``."""
    sort, detail = kind
    if sort.name == "BASE":
        return _WORDS.get(detail[0], str(detail[0]))
    if sort.name == "NAME":
        return str(detail)
    inner, length = detail
    return (
        f"{_written(inner)}[{length}]" if sort.name == "ARRAY" else f"sequence<{_written(inner)}>"
    )
