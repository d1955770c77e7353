"""Follow a file of lines that another process writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gp_active_sensing.errors import RunError
from gp_active_sensing.util.files import cannot, open_file

__all__ = ["LineTail", "Stamp", "stamp_of"]

BLOCK = 1 << 16
"""Bytes that are read at once."""
MOST_OF_LINE = 1 << 26
"""Bytes of a line; a longer one is none that we write."""

Stamp = tuple[int, int, int]
"""Which file lies at a path, and when it was changed: device, number, time [ns]."""


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file, None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


class LineTail:
    """Reads the lines that were completed since the last time; one that is not yet waits.

    Args:
        path: the file, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._rest = b""
        self._file: tuple[int, int] | None = None

    def read(self) -> tuple[bool, list[bytes]]:
        """Return the next lines, without their ends, and whether they begin the file again.

        It is begun again where another file lies at the path, or this one became shorter.

        Raises:
            RunError: it cannot be read, or has a line without an end.
        """
        try:
            with open_file(self.path) as stream:
                there = os.fstat(stream.fileno())
                again = self._file not in (None, (there.st_dev, there.st_ino))
                again = again or there.st_size < self._offset
                if again:
                    self._offset, self._rest = 0, b""
                self._file = there.st_dev, there.st_ino
                stream.seek(self._offset)
                data = stream.read(BLOCK)
        except FileNotFoundError:
            again = self._file is not None
            self._offset, self._rest, self._file = 0, b"", None
            return again, []
        except OSError as error:
            raise cannot(self.path, "read", error) from error
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MOST_OF_LINE:
            msg = (
                f"{self.path}: expected lines of at most {MOST_OF_LINE} bytes, got a longer one at "
                f"byte {self._offset - len(self._rest)}: this is no journal or record of a mission"
            )
            raise RunError(msg)
        return again, lines

    def blocks(self) -> Iterator[tuple[bool, list[bytes]]]:
        """Yield the next lines, some at a time, until none are left."""
        while True:
            before = self._offset
            again, lines = self.read()
            if lines or again:
                yield again, lines
            if self._offset == before and not again:
                return
