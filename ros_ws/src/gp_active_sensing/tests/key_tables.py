"""Tables of the keys of a configuration, as the pages have them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from gp_active_sensing.commands.reference import describe_fields

__all__ = ["key_table"]


def key_table(cls: type, path: str = "", *, sections: Mapping[str, type] | None = None) -> str:
    """Return a Markdown table of every key of a configuration and of its sections.

    Args:
        cls: the configuration.
        path: of the configuration within the whole.
        sections: for an open mapping such as `policy`, the dataclass whose fields are shown
            beside its ``name``.
    """
    head = ["| key | type | default | unit | bounds | meaning |", "| --- " * 6 + "|"]
    return "\n".join(head + list(_rows(cls, path, sections or {})))


def _rows(cls: type, path: str, sections: Mapping[str, type]) -> Iterator[str]:
    hints = typing.get_type_hints(cls)
    for entry in describe_fields(cls):
        hint = hints[entry["name"]]
        key = f"{path}.{entry['name']}" if path else entry["name"]
        if dataclasses.is_dataclass(hint):
            yield from _rows(typing.cast(type, hint), key, sections)
            continue
        if key in sections:
            name = f"`{entry['default']['name']}`"
            yield f"| `{key}.name` | text | {name} |  |  | {entry['help']} |"
            yield from _rows(sections[key], key, {})
            continue
        default = "required" if entry["required"] else f"`{_yaml_word(entry['default'])}`"
        cells = [f"`{key}`", entry["type"], default, entry["unit"], entry["bounds"], entry["help"]]
        yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _yaml_word(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value == "":
        return '""'
    if isinstance(value, list):
        return "[" + ", ".join(_yaml_word(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_yaml_word(v)}" for k, v in value.items()) + "}"
    return f"{value:g}" if isinstance(value, float) else str(value)
