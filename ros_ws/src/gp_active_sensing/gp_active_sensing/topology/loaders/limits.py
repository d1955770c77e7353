"""What a map may be: a file, of some size, with numbers and junctions that roads have.

The limits are far beyond every map of roads; they are there for files that were made to use up time
or memory.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.segments import Segment
from gp_active_sensing.util.files import open_file

__all__ = [
    "BYTES_PER_TAG",
    "MOST_FLOOR",
    "MOST_NUMBER",
    "MOST_RATIO",
    "MOST_TAGS",
    "MOST_TEXT",
    "MOST_TOKEN",
    "MOST_TURNS",
    "check_file",
    "crowded",
    "is_text",
    "read_text",
]

MOST_TEXT = 256 * 2**20
"""Bytes of a file of GeoJSON or of a table."""
MOST_TOKEN = 4 * 2**20
"""Bytes of a tag of XML with its attributes, or of a text between two."""
MOST_FLOOR = 16 * 2**20
MOST_RATIO = 30
"""A gzip file may expand to `MOST_FLOOR` bytes and so many times its own size."""
MOST_TAGS = 100_000
BYTES_PER_TAG = 8
"""A file of XML with more tags than that has so many bytes for each; `<nd ref="1"/>` has 13."""
MOST_NUMBER = 1e9
"""Of a length, a limit, a number of lanes or a coordinate [m, m/s, 1, m]."""
MOST_TURNS = 10_000
"""Segments that end at a junction, times those that begin there."""


def check_file(path: Path, most: int = sys.maxsize) -> None:
    """Refuse what is no file, or has too many bytes, and would be read without end.

    Raises:
        MapError: naming the file.
    """
    try:
        with open_file(path) as stream:
            size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror or error}"
        raise MapError(msg) from error
    if size > most:
        msg = f"{path}: is too large: expected at most {most >> 20} MiB"
        raise MapError(msg)


def read_text(path: Path) -> str:
    """Return the text of a map, without a byte order mark.

    Raises:
        MapError: no file, no text in UTF-8, or too large.
    """
    check_file(path, MOST_TEXT)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read as text in UTF-8: {error}"
        raise MapError(msg) from error


def is_text(value: str) -> bool:
    """Whether a text can be written: JSON may name half a character (a lone surrogate)."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def crowded(segments: Iterable[Segment]) -> list[str]:
    """Return what is wrong with junctions at which too many segments meet."""
    ends: Counter[str] = Counter()
    starts: Counter[str] = Counter()
    for segment in segments:
        ends[segment.end] += 1
        starts[segment.start] += 1
    return [
        f"junction {junction!r}: {count} segments end and {starts[junction]} begin there; expected "
        f"at most {MOST_TURNS} ways from one to another"
        for junction, count in ends.items()
        if count * starts[junction] > MOST_TURNS
    ]
