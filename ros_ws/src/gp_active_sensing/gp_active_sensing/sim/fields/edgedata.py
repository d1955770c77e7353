"""SUMO's edgeData output: means of each edge over intervals of time, as XML."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError, suggest
from gp_active_sensing.sim.fields.slots import Slot
from gp_active_sensing.topology.loaders.values import number_of
from gp_active_sensing.topology.loaders.xml_stream import elements, tag_of

__all__ = ["is_xml", "read_edgedata"]


def is_xml(path: Path) -> bool:
    """Return whether a file is XML by its name: .xml or .xml.gz."""
    return path.name.lower().endswith((".xml", ".xml.gz"))


def read_edgedata(path: Path, attribute: str) -> tuple[tuple[Slot, ...], dict[str, list[float]]]:
    """Return the intervals and each edge's values of one attribute, NaN where it has none.

    Args:
        path: ``.xml`` or ``.xml.gz``.
        attribute: of the ``edge`` elements, such as ``speed`` [m/s].

    Raises:
        MapError: not such a file, damaged, or without that attribute.
    """
    slots: list[Slot] = []
    rows: dict[str, list[float]] = {}
    seen: set[str] = set()
    for element in elements(path, ("edge",), root="meandata", opened=("interval",)):
        if tag_of(element) == "interval":
            slots.append(_slot(element, path))
        elif slots:
            seen.update(element.attrib)
            _take(rows, element, attribute, len(slots) - 1, path)
    if not slots:
        msg = f"{path}: expected SUMO's edgeData, <meandata> with <interval>s, got none of them"
        raise MapError(msg)
    if attribute not in seen:
        known = sorted(seen - {"id"})
        msg = (
            f"{path}: no edge has an attribute {attribute!r} (field.value_column)."
            f"{suggest(attribute, known)} They have: {', '.join(known) or 'none'}"
        )
        raise MapError(msg)
    k = len(slots)
    return tuple(slots), {name: row + [math.nan] * (k - len(row)) for name, row in rows.items()}


def _slot(element: Any, path: Path) -> Slot:
    bounds = [_number(element.get(key)) for key in ("begin", "end")]
    if any(math.isnan(bound) for bound in bounds):
        msg = (
            f"{path}: expected numbers as begin and end of an interval, got "
            f"{element.get('begin')!r} and {element.get('end')!r}"
        )
        raise MapError(msg)
    return Slot(*bounds)


def _take(
    rows: dict[str, list[float]], element: Any, attribute: str, index: int, path: Path
) -> None:
    name, text = element.get("id"), element.get(attribute)
    where = f"{path}: edge {name!r} of interval {index + 1}"
    if name is None:
        msg = f"{path}: an edge of interval {index + 1} has no id"
        raise MapError(msg)
    row = rows.setdefault(name, [])
    if len(row) > index:
        msg = f"{where} is there twice; keep the output of one edgeData in a file"
        raise MapError(msg)
    row += [math.nan] * (index - len(row))
    value = math.nan if text is None else _number(text)
    if text is not None and math.isnan(value):
        msg = f"{where}: expected a finite number as {attribute!r}, got {text!r}"
        raise MapError(msg)
    row.append(value)


def _number(text: str | None) -> float:
    """Return a finite number, NaN for anything else."""
    value = number_of(text)
    return math.nan if value is None or math.isinf(value) else value
