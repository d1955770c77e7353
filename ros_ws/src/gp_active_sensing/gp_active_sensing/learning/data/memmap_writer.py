"""Write rows to disk as they come, to be memory-mapped later."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import IO

import numpy as np

from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.files import cannot

__all__ = ["IN_MEMORY", "MemmapWriter"]

logger = logging.getLogger(__name__)

IN_MEMORY = 100_000
"""Rows that are kept in memory; where there are more, all are on disk."""
_NAMES = ("rows-inputs", "rows-outputs")


class MemmapWriter:
    """Takes rows, a few at a time, and gives them back as two arrays.

    Args:
        dimensions: d.
        folder: where more than `IN_MEMORY` rows are kept, as two .npy files beside whatever there
            is; it must be there. None = in memory, however many they are.
    """

    def __init__(self, dimensions: int, folder: Path | None) -> None:
        self._d = dimensions
        self._folder = folder
        self._chunks: list[FloatArray] = []
        self._streams: list[IO[bytes]] = []
        self._paths: list[Path] = []
        self.rows = 0

    def add(self, values: FloatArray) -> None:
        """Add rows (m, d + 1), the output last.

        Raises:
            RunError: the disk is full, or the folder cannot be written to.
        """
        self.rows += len(values)
        if self._streams:
            self._write(values)
            return
        self._chunks.append(values)
        if self._folder is not None and self.rows > IN_MEMORY:
            self._begin(self._folder)
            for chunk in self._chunks:
                self._write(chunk)
            self._chunks.clear()

    def arrays(self) -> tuple[FloatArray, FloatArray]:
        """Return inputs (n, d) and outputs (n,); those on disk as read-only memmaps."""
        if not self._streams:
            empty = np.empty((0, self._d + 1))
            whole = np.concatenate(self._chunks) if self._chunks else empty
            return np.ascontiguousarray(whole[:, :-1]), np.ascontiguousarray(whole[:, -1])
        for stream, path, shape in zip(self._streams, self._paths, self._shapes(), strict=True):
            try:
                stream.seek(0)
                _header(stream, shape)
                stream.close()
            except OSError as error:
                raise cannot(path, "write", error) from error
        inputs, outputs = (np.load(path, mmap_mode="r") for path in self._paths)
        return inputs, outputs

    def close(self) -> None:
        """Close the files, whatever has become of them."""
        for stream in self._streams:
            stream.close()

    def _shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (self.rows, self._d), (self.rows,)

    def _begin(self, folder: Path) -> None:
        logger.info("more than %d rows: they are kept in %s", IN_MEMORY, folder)
        try:
            for name, shape in zip(_NAMES, self._shapes(), strict=True):
                path = _free(folder, name)
                stream = path.open("xb")
                self._streams.append(stream)
                self._paths.append(path)
                _header(stream, shape)
        except OSError as error:
            raise cannot(folder, "write", error) from error

    def _write(self, values: FloatArray) -> None:
        parts = (values[:, :-1], values[:, -1])
        try:
            for stream, part in zip(self._streams, parts, strict=True):
                stream.write(np.ascontiguousarray(part, dtype=np.float64).tobytes())
        except OSError as error:
            raise cannot(self._folder or Path(), "write", error) from error


def _free(folder: Path, name: str) -> Path:
    """Return a name that no file has."""
    path, number = folder / f"{name}.npy", 1
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}.npy"
    return path


def _header(stream: IO[bytes], shape: tuple[int, ...]) -> None:
    """Write the head of a .npy file; its length does not depend on the number of rows."""
    descr = np.lib.format.dtype_to_descr(np.dtype(np.float64))
    np.lib.format.write_array_header_1_0(
        stream, {"descr": descr, "fortran_order": False, "shape": shape}
    )
