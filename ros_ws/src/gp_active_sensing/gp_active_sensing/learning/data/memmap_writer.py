"""Write rows to disk as they come, and memory-map them."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import IO

import numpy as np

from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.files import cannot

__all__ = ["IN_MEMORY", "MemmapWriter"]

logger = logging.getLogger(__name__)

IN_MEMORY = 100_000
"""Rows that are kept in memory; where there are more, all are on disk."""


class MemmapWriter:
    """Takes rows, a few at a time, and gives them back as two arrays.

    Args:
        dimensions: d.
        folder: where more than `IN_MEMORY` rows are kept, in a file of float64 beside whatever
            there is; it must be there. None = in memory, however many they are.
    """

    def __init__(self, dimensions: int, folder: Path | None) -> None:
        self._width = dimensions + 1
        self._folder = folder
        self._chunks: list[FloatArray] = []
        self._stream: IO[bytes] | None = None
        self.rows = 0

    def add(self, values: FloatArray) -> None:
        """Add rows (m, d + 1), the output last.

        Raises:
            RunError: the disk is full, or the folder cannot be written to.
        """
        self.rows += len(values)
        self._chunks.append(values)
        if self._folder is not None and self.rows > IN_MEMORY:
            self._write(self._folder)

    def arrays(self) -> tuple[FloatArray, FloatArray]:
        """Return inputs (n, d) and outputs (n,); those on disk as read-only memmaps."""
        if self._stream is not None:
            stored = np.memmap(self._stream.name, np.float64, "r", shape=(self.rows, self._width))
            return stored[:, :-1], stored[:, -1]
        whole = np.concatenate([np.empty((0, self._width)), *self._chunks])
        return np.ascontiguousarray(whole[:, :-1]), np.ascontiguousarray(whole[:, -1])

    def close(self) -> None:
        """Close the file; the arrays stay."""
        if self._stream is not None:
            self._stream.close()

    def _write(self, folder: Path) -> None:
        try:
            if self._stream is None:
                logger.info("more than %d rows: they are kept in %s", IN_MEMORY, folder)
                # With a name: processes that learn side by side map it too.
                self._stream = tempfile.NamedTemporaryFile(
                    dir=folder, prefix="rows-", suffix=".f64", delete=False
                )
            for chunk in self._chunks:
                self._stream.write(np.ascontiguousarray(chunk, dtype=np.float64).tobytes())
            self._stream.flush()
        except OSError as error:
            raise cannot(folder, "write", error) from error
        self._chunks.clear()
