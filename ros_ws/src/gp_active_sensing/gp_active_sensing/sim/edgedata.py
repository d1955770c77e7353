"""SUMO's edgeData output: means of each edge over intervals of time, as XML."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import MapError, suggest
from gp_active_sensing.sim.slots import Slot

__all__ = ["is_xml", "read_edgedata"]


def is_xml(path: Path) -> bool:
    """Say whether a file is XML by its name: .xml or .xml.gz."""
    return path.name.lower().endswith((".xml", ".xml.gz"))


def read_edgedata(path: Path, attribute: str) -> tuple[tuple[Slot, ...], dict[str, list[float]]]:
    """Return the intervals and each edge's values of one attribute, NaN where it has none.

    Parsed without document types and entities, so that nothing in it can expand or load anything.

    Args:
        path: ``.xml`` or ``.xml.gz``.
        attribute: of the ``edge`` elements, such as ``speed`` [m/s].

    Raises:
        MapError: not such a file, damaged, or without that attribute.
    """
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, iterparse

    slots: list[Slot] = []
    rows: dict[str, list[float]] = {}
    seen: set[str] = set()
    root = ""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as stream:
            for event, element in iterparse(stream, events=("start", "end"), forbid_dtd=True):
                root = root or element.tag
                if event == "start" and element.tag == "interval":
                    slots.append(_slot(element, path))
                if event == "end" and element.tag == "edge" and slots:
                    seen.update(element.attrib)
                    _take(rows, element, attribute, len(slots) - 1, path)
                if event == "end" and element.tag == "interval":
                    element.clear()
    except (OSError, EOFError, zlib.error, ParseError, DefusedXmlException, ValueError) as error:
        if isinstance(error, MapError):
            raise
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        msg = f"{path}: cannot be read as SUMO's edgeData: {what}"
        raise MapError(msg) from error
    if not slots:
        msg = f"{path}: expected SUMO's edgeData, <meandata> with <interval>s, got <{root}>"
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
    try:
        value = float(text or "")
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
