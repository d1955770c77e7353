"""Arrays in the page: 16-bit levels, differences between rows, deflate, base64.

The browser undoes it in ``assets/decode.js``. A map changes little from one step to the next, so
the differences are small numbers; high and low bytes are kept apart, which deflate likes.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["LEVELS", "pack", "pack_integers", "unpack"]

LEVELS = 65535
"""Largest level: values are told apart to 1/65535 of their range."""


def pack(values: FloatArray, low: float, high: float) -> dict[str, Any]:
    """Return an array as plain data for JSON.

    Args:
        values: (rows, columns); what lies outside the range is moved to its ends.
        low: start of the range.
        high: end of the range.
    """
    step = (high - low) / LEVELS if high > low else 1.0
    levels = np.rint((np.clip(values, low, max(low, high)) - low) / step).astype(np.uint16)
    return _pack(levels, low, step)


def pack_integers(values: IntArray) -> dict[str, Any]:
    """Return (rows,) integers from 0 to 2³²-1, as two columns of 16 bits."""
    whole = np.asarray(values, dtype=np.int64)
    if whole.size and (whole.min() < 0 or whole.max() >= 2**32):
        msg = f"expected integers of 0 … 2³²-1, got {whole.min()} … {whole.max()}"
        raise ValueError(msg)
    levels = np.column_stack([whole >> 16, whole & 0xFFFF]).astype(np.uint16)
    return _pack(levels.reshape(len(whole), 2), 0.0, 1.0)


def unpack(packed: dict[str, Any]) -> FloatArray:
    """Return the (rows, columns) values again; what the browser does, for tests."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), dtype=np.uint8)
    high, low = planes.reshape(2, packed["rows"], packed["columns"]).astype(np.uint16)
    levels = np.cumsum((high << 8) | low, axis=0, dtype=np.uint16)
    return np.asarray(packed["low"] + packed["step"] * levels.astype(np.float64))


def _pack(levels: Any, low: float, step: float) -> dict[str, Any]:
    rows, columns = levels.shape
    changes = levels.copy()
    changes[1:] -= levels[:-1]  # wraps around, and back again when summed
    planes = np.concatenate([(changes >> 8).ravel(), (changes & 0xFF).ravel()]).astype(np.uint8)
    data = base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")
    return {"rows": rows, "columns": columns, "low": low, "step": step, "data": data}
