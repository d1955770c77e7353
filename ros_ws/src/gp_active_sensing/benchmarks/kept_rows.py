"""Rows of missions in a file, a line each, so that what was played once is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


def append(file: Path, row: Row) -> None:
    """Write a row as a line of its own, also after one that was cut short."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as lines:
        if lines.tell():
            lines.seek(-1, os.SEEK_END)
            if lines.read(1) != b"\n":
                lines.write(b"\n")
        lines.write(json.dumps(row).encode() + b"\n")


def read(file: Path) -> dict[str, Row]:
    """Return the rows that are kept; a line that was cut short is left out."""
    found: dict[str, Row] = {}
    if not file.exists():
        return found
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "key" in row:
            found[row["key"]] = row
    return found
