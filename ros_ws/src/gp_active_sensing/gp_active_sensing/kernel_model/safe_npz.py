"""Read the arrays of an .npz file without trusting its headers."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from gp_active_sensing.kernel_model.schema import CorruptModelError
from gp_active_sensing.types import FloatArray

__all__ = ["HEADER", "first_look", "pack", "unpack"]

HEADER = "header"
"""Name of the entry that is bytes; all others are numbers of double precision."""
_BEGIN = b"PK\x03\x04"
"""First bytes of a zip archive."""
LONGEST = 1 << 26
"""Longest header [B]."""


def pack(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Return an .npz without compression, equal for equal arrays."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for key, value in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, value, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), entry.getvalue())
    return whole.getvalue()


def first_look(data: bytes) -> bytes:
    """Return the header of an .npz, whatever else is in there and however it is packed.

    What a later version does with numbers is not known here, so they are left alone.

    Returns:
        Its bytes; none where there is no header, or none that this Python can unpack, or where
        the file is something else than an archive.

    Raises:
        Damaged: it is cut short, or the header is not what its sum says.
    """
    if not _BEGIN.startswith(data[: len(_BEGIN)]):
        return b""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name for name in (f"{HEADER}.npy", HEADER) if name in archive.namelist()]
            if not names:
                return b""
            with archive.open(names[0]) as stream:
                raw = stream.read(LONGEST + 1)
    except (NotImplementedError, RuntimeError):  # packed in a way that is not known, or encrypted
        return b""
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, IndexError) as error:
        raise CorruptModelError(str(error)) from error
    if len(raw) > LONGEST:
        msg = f"a header of more than {LONGEST} bytes"
        raise CorruptModelError(msg)
    start = raw.find(b"{", raw.find(b"\n") + 1) if raw.startswith(b"\x93NUMPY") else 0
    return raw[max(start, 0) :]


def unpack(data: bytes) -> dict[str, FloatArray]:
    """Return the arrays of an .npz; none is made that is larger than the file."""
    found: dict[str, FloatArray] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > len(data):
                msg = "its entries are larger than the file"
                raise CorruptModelError(msg)
            for entry in entries:
                if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                    msg = f"entry {entry.filename!r} is compressed or encrypted"
                    raise CorruptModelError(msg)
                key = entry.filename.removesuffix(".npy")
                found[key] = _array(archive.read(entry), key)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        raise CorruptModelError(str(error)) from error
    except (NotImplementedError, ValueError, IndexError, UnicodeDecodeError) as error:
        raise CorruptModelError(str(error)) from error
    return found


def _array(data: bytes, key: str) -> FloatArray:
    """Return the array of an .npy, without trusting the shape that it says it has."""
    stream = io.BytesIO(data)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            msg = f"{key}: expected an array file of version 1.0"
            raise CorruptModelError(msg)
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        msg = f"{key}: {error}"
        raise CorruptModelError(msg) from error
    expected = np.dtype(np.uint8) if key == HEADER else np.dtype("<f8")
    rest = data[stream.tell() :]
    if by_columns or dtype != expected or not all(isinstance(n, int) and n >= 0 for n in shape):
        msg = f"{key}: expected an array of {expected} by rows"
        raise CorruptModelError(msg)
    if math.prod(shape) * dtype.itemsize != len(rest):
        msg = f"{key}: {len(rest)} bytes for an array of shape {shape}"
        raise CorruptModelError(msg)
    return np.array(np.frombuffer(rest, dtype).reshape(shape))
