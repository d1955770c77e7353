"""Files that a kill cannot spoil: written whole or not at all, or line by line.

A last line cut short by a kill is tolerated when read, and removed before more is appended.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from gp_active_sensing.errors import RunError

__all__ = ["cannot", "drop_cut_line", "read_lines", "write_whole"]

logger = logging.getLogger(__name__)


def cannot(path: Path, what: str, error: BaseException) -> RunError:
    """Return the error that says which file could not be read or written, and why."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return RunError(f"{path}: cannot {what}: {why}")


def write_whole(path: Path, text: str) -> Path:
    """Write beside, then rename: a reader sees the old file or the new one.

    Raises:
        RunError: the file cannot be written.
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        raise cannot(path, "write", error) from error
    return path


def drop_cut_line(path: Path) -> bool:
    """Remove a half-written last line; say whether there was one.

    Raises:
        RunError: the file cannot be read or written.
    """
    try:
        data = path.read_bytes() if path.exists() else b""
        whole = data.rfind(b"\n") + 1
        if whole == len(data):
            return False
        with path.open("rb+") as stream:
            stream.truncate(whole)
    except OSError as error:
        raise cannot(path, "mend", error) from error
    logger.warning("%s: removed a half-written last line (%d bytes)", path, len(data) - whole)
    return True


def read_lines(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """Return the objects of a file of JSON lines, and whether its last line was cut short.

    A file that is not there has none.

    Raises:
        RunError: the file cannot be read, or a whole line is not a JSON object.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], False
    except OSError as error:
        raise cannot(path, "read", error) from error
    *lines, rest = data.split(b"\n")
    items = []
    for number, line in enumerate(lines, start=1):
        try:
            item = json.loads(line)
        except ValueError as error:
            msg = f"{path}, line {number}: expected a JSON object ({error})"
            raise RunError(msg) from error
        if not isinstance(item, dict):
            msg = f"{path}, line {number}: expected an object, got {type(item).__name__}"
            raise RunError(msg)
        items.append(item)
    return items, bool(rest)
