"""Tables of the keys of a configuration, as the pages have them."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from gp_active_sensing.commands.reference import describe_fields
from gp_active_sensing.config import declared, mapped
from gp_active_sensing.mission.stream_config import ReadingConfig


def key_table(cls: type, sections: Mapping[str, type] | None = None) -> str:
    """Return a Markdown table of every key of a configuration and of its sections.

    Args:
        cls: the configuration.
        sections: makes a short table: type, unit and bounds in one column, the first statement of
            each help, and for an open mapping such as `policy` this dataclass beside its ``name``.
    """
    short = sections is not None
    names = ["type", "default", "unit", "bounds"] if not short else ["default", "values"]
    head = [f"| key | {' | '.join(names)} | meaning |", "| --- " * (2 + len(names)) + "|"]
    return "\n".join(head + list(_rows(cls, "", sections or {}, short)))


def shortened(text: str, values: str = "") -> str:
    """Return the first statement of a help text; one that explains each value stays whole."""
    first = re.split(r"; |\. ", text)[0].split(", so that ")[0]
    return text if first.split(":")[0] in values.split(", ") else re.sub(r": \w+$", "", first)


def _rows(cls: type, path: str, sections: Mapping[str, type], short: bool) -> Iterator[str]:
    hints = {field.name: hint for field, hint in declared(cls)}
    for entry in describe_fields(cls):
        hint = hints[entry["name"]]
        key = f"{path}.{entry['name']}" if path else entry["name"]
        if dataclasses.is_dataclass(hint):
            yield from _rows(typing.cast(type, hint), key, sections, short)
            continue
        if key in sections:
            name = f"`{entry['default']['name']}`"
            yield _row([f"`{key}.name`", "text", name, "", "", entry["help"]], short)
            yield from _rows(sections[key], key, {}, short)
            continue
        if (of := mapped(hint)) is not None:
            usual = {field.name for field in dataclasses.fields(ReadingConfig)}
            own = [each for each in describe_fields(of) if each["name"] not in usual]
            yield _row([f"`{key}`", "mapping", "`{}`", "", "", entry["help"]], short)
            for each in own:
                default = "required" if each["required"] else f"`{_yaml_word(each['default'])}`"
                default = default if each["help"] or each["required"] else "`{}`"
                cells = [f"`{key}.NAME.{each['name']}`", each["type"], default, each["unit"]]
                yield _row([*cells, each["bounds"], each["help"] or "see that section"], short)
            continue
        default = "required" if entry["required"] else f"`{_yaml_word(entry['default'])}`"
        cells = [f"`{key}`", entry["type"], default, entry["unit"], entry["bounds"], entry["help"]]
        yield _row(cells, short)


def _row(cells: list[Any], short: bool) -> str:
    if short:
        key, kind, default, unit, bounds, help_ = map(str, cells)
        values = ", ".join(filter(None, [unit, bounds.replace("; ", ", ")]))
        values = values or (kind if default == "`null`" else "")
        cells = [key, default, values, shortened(help_, bounds)]
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


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
