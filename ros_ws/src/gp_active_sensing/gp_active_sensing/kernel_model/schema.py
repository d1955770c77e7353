"""Checked reading of a model file: entries of its header, and arrays."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from gp_active_sensing.types import FloatArray

LARGEST = 1e100
"""Largest absolute value of a number. The limit ensures that the square of a number is finite."""
_DEEPEST = 30
"""Largest depth of nested objects and lists in a header."""
HEADER = "header"
"""Name of the entry that contains bytes. All other entries contain numbers of double precision."""
_BEGIN = b"PK\x03\x04"
"""First bytes of a zip archive."""
LONGEST = 1 << 26
"""Longest header [B]."""


_UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, IndexError)
"""Errors that `zipfile` raises for a damaged archive."""


class CorruptModelError(ValueError):
    """Problem in the contents of a model file."""


def check_plain(value: Any, where: str, depth: int = 0) -> None:
    """Reject a value that JSON cannot store: NaN, invalid Unicode, or very deep nesting."""
    if depth > _DEEPEST:
        msg = f"{where[:60]}: expected at most {_DEEPEST} levels"
        raise CorruptModelError(msg)
    if isinstance(value, Mapping):
        for key, inside in value.items():
            check_plain(key, where, depth + 1)
            check_plain(inside, f"{where}.{key}", depth + 1)
    elif isinstance(value, list):
        for k, inside in enumerate(value):
            check_plain(inside, f"{where}[{k}]", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        msg = f"{where}: expected a finite number, got {value}"
        raise CorruptModelError(msg)
    elif isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            msg = f"{where}: text that cannot be written: {ascii(value)[:60]}"
            raise CorruptModelError(msg.encode("ascii", "replace").decode("ascii")) from error


class HeaderReader:
    """Reader that checks the types and values of entries; `where` is a prefix in error messages."""

    def __init__(self, entries: Any, where: str) -> None:
        if not isinstance(entries, Mapping):
            msg = f"{where}: expected an object, got {type(entries).__name__}"
            raise CorruptModelError(msg)
        self._entries = entries
        self._where = f"{where}." if where else ""
        self._used: set[str] = set()

    def _get(self, key: str) -> Any:
        if key not in self._entries:
            msg = f"{self._where}{key}: is missing"
            raise CorruptModelError(msg)
        self._used.add(key)
        return self._entries[key]

    def _expected(self, key: str, what: str) -> CorruptModelError:
        shown = repr(self._entries[key])
        return CorruptModelError(f"{self._where}{key}: expected {what}, got {shown[:60]}")

    def all_used(self) -> None:
        """Reject entries that were not read."""
        for key in self._entries:
            if key not in self._used:
                msg = f"{self._where}{key}: is no entry of a model"
                raise CorruptModelError(msg)

    def has(self, key: str) -> bool:
        """Return whether an entry exists and is not null."""
        return self._entries.get(key) is not None

    def inside(self, key: str) -> HeaderReader:
        """Return a reader of a nested JSON object."""
        return HeaderReader(self.mapping(key), f"{self._where}{key}")

    def number(self, key: str, *, low: float = -math.inf, above: float = -math.inf) -> float:
        """Return a finite number."""
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._expected(key, "a number")
        if not (abs(value) <= LARGEST and value >= low and value > above):
            raise self._expected(key, f"a number within ±{LARGEST:g}, at least {low:g}")
        return float(value)

    def whole(self, key: str, low: int = 0) -> int:
        """Return a whole number that is not below `low`."""
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 1 << 63:
            what = "not negative" if low == 0 else f"{low} or more"
            raise self._expected(key, f"a whole number, {what}")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean value."""
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._expected(key, "true or false")
        return value

    def text(self, key: str, most: int = 1 << 20) -> str:
        """Return text of at most `most` characters."""
        value = self._get(key)
        if not isinstance(value, str) or len(value) > most:
            raise self._expected(key, f"text of at most {most} characters")
        return value

    def one_of(self, key: str, *words: str) -> str:
        """Return a word, which must be one of `words`."""
        value = self._get(key)
        if value not in words:
            raise self._expected(key, " or ".join(words))
        return str(value)

    def items(self, key: str, least: int = 0) -> list[Any]:
        """Return a list of at least `least` items."""
        value = self._get(key)
        if not isinstance(value, list) or len(value) < least:
            raise self._expected(key, f"a list of at least {least}")
        return value

    def texts(self, key: str, least: int = 0) -> list[str]:
        """Return a list of different texts."""
        value = self.items(key, least)
        if not all(isinstance(v, str) for v in value) or len(set(value)) != len(value):
            raise self._expected(key, "a list of different words")
        return value

    def words(self, key: str) -> list[str]:
        """Return a list of texts."""
        value = self.items(key)
        if not all(isinstance(v, str) for v in value):
            raise self._expected(key, "a list of texts")
        return value

    def numbers(self, key: str) -> list[float]:
        """Return a list of finite numbers."""
        value = self.items(key)
        for v in value:
            if isinstance(v, bool) or not isinstance(v, int | float) or not abs(v) <= LARGEST:
                raise self._expected(key, f"a list of numbers within ±{LARGEST:g}")
        return [float(v) for v in value]

    def pairs(self, key: str) -> list[tuple[str, str]]:
        """Return a list of pairs of texts."""
        found = []
        for value in self.items(key):
            if not isinstance(value, list) or [type(v) for v in value] != [str, str]:
                raise self._expected(key, "a list of pairs of words")
            found.append((value[0], value[1]))
        return found

    def mapping(self, key: str) -> dict[str, Any]:
        """Return a JSON object as a dictionary."""
        value = self._get(key)
        if not isinstance(value, dict):
            raise self._expected(key, "an object")
        return value

    def length(self, key: str) -> int:
        """Return the number of rows of an array."""
        value = self._get(key)
        if value.ndim < 1:
            msg = f"{self._where}{key}: expected rows, got a single number"
            raise CorruptModelError(msg)
        return len(value)

    def array(
        self,
        key: str,
        shape: tuple[int, ...],
        *,
        low: float = -LARGEST,
        high: float = LARGEST,
        above: float = -math.inf,
        missing: bool = False,
    ) -> FloatArray:
        """Return an array of the given shape with finite numbers within limits.

        Numbers may equal `low` or `high`, but must be greater than `above`. With `missing`, NaN is
        allowed.
        """
        value: FloatArray = self._get(key)
        if value.shape != shape:
            msg = f"{self._where}{key}: expected shape {shape}, got {value.shape}"
            raise CorruptModelError(msg)
        good = (value >= low) & (value <= high) & (value > above)
        if not np.all(good | np.isnan(value) if missing else good):
            msg = f"{self._where}{key}: expected finite numbers of {low:g} … {high:g}"
            raise CorruptModelError(msg)
        return value

    def triangle(self, key: str, size: int, high: float) -> FloatArray:
        """Return a lower triangular matrix of numbers within ±`high`."""
        value = self.array(key, (size, size), low=-high, high=high)
        if np.triu(value, 1).any():
            msg = f"{self._where}{key}: expected a lower triangle"
            raise CorruptModelError(msg)
        return value


def pack(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Return the bytes of an uncompressed .npz; equal arrays give equal bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for key, value in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, value, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), entry.getvalue())
    return whole.getvalue()


def read_header(data: bytes) -> bytes:
    """Return the header of an .npz. Other entries, which later versions may change, are not read.

    Returns:
        Bytes of the header; empty if the file is no .npz or if Python cannot unpack the header.

    Raises:
        CorruptModelError: the archive is incomplete, or the header contradicts its checksum.
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
    except (NotImplementedError, RuntimeError):  # unknown compression, or encrypted
        return b""
    except _UNREADABLE as error:
        raise CorruptModelError(str(error)) from error
    if len(raw) > LONGEST:
        msg = f"a header of more than {LONGEST} bytes"
        raise CorruptModelError(msg)
    start = raw.find(b"{", raw.find(b"\n") + 1) if raw.startswith(b"\x93NUMPY") else 0
    return raw[max(start, 0) :]


def unpack(data: bytes) -> dict[str, FloatArray]:
    """Return the arrays of an .npz; reject arrays that are larger than the file."""
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
    except (RuntimeError, *_UNREADABLE) as error:
        raise CorruptModelError(str(error)) from error
    return found


def _array(data: bytes, key: str) -> FloatArray:
    """Return the array of an .npy; check its stated shape against the number of bytes."""
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
