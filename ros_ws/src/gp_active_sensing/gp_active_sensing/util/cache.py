"""Disk cache for expensive results; a cache error is never fatal."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gp_active_sensing.util.files import making_whole, open_file

logger = logging.getLogger(__name__)

MOST = 1_000_000_000
"""Largest size of the cache folder [bytes]."""
_CHECKSUM = 32
"""Length of the checksum at the end of a file [bytes]."""

Arrays = dict[str, npt.NDArray[np.float64]]


def cache_folder() -> Path:
    """Return the cache folder, which may not exist yet.

    The folder is ``$XDG_CACHE_HOME/gp_active_sensing``. Without an absolute path in the variable,
    the folder is ``~/.cache/gp_active_sensing``.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = given if given.is_absolute() else Path(os.path.expanduser("~"), ".cache")
    if not base.is_absolute():  # no home directory, as in a container
        base = Path(tempfile.gettempdir(), f"cache-{os.getuid()}")
    return base / "gp_active_sensing"


def cached_arrays(
    kind: str,
    version: int,
    key: Mapping[str, object],
    compute: Callable[[], Arrays],
    *,
    keep: bool = True,
) -> Arrays:
    """Return the stored result of `compute`, or compute and store it.

    The result is also computed if the stored file is damaged. An unwritable folder is no error.

    Args:
        kind: first part of the file name.
        version: version of the computation; raise this number when results for the same key change.
        key: all arrays, numbers and texts that the result depends on.
        compute: function that computes the result.
        keep: False = always compute, and store nothing.
    """
    if not keep:
        return compute()
    path = cache_folder() / f"{kind}-{version}-{_digest(key)}.npz"
    try:
        found = _read(path)
        logger.info("%s taken from %s", kind, path)
        return found
    except FileNotFoundError:
        pass
    except Exception as error:  # damaged bytes cause errors of many classes
        logger.warning("%s cannot be read (%s); computing again", path, error)
    found = compute()
    _write(path, found)
    return found


def _read(path: Path) -> Arrays:
    with open_file(path) as stream:
        if (size := os.fstat(stream.fileno()).st_size) > MOST:
            msg = f"expected at most {MOST} bytes, got {size}"
            raise ValueError(msg)
        data = stream.read()
    if _checksum(path, data[:-_CHECKSUM]) != data[-_CHECKSUM:]:
        msg = "its checksum is not that of what it holds"
        raise ValueError(msg)
    with np.load(io.BytesIO(data[:-_CHECKSUM]), allow_pickle=False) as kept:
        return {name: np.asarray(kept[name], dtype=np.float64) for name in kept.files}


def _checksum(path: Path, data: bytes) -> bytes:
    """Return a checksum of a file's data and name, so that a renamed file does not match."""
    return hashlib.sha256(path.name.encode() + data).digest()


def _digest(key: Mapping[str, object]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(key.items()):
        array = np.ascontiguousarray(value)
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:32]


def _write(path: Path, arrays: Arrays) -> None:
    made = io.BytesIO()
    np.savez(made, **arrays)  # type: ignore[arg-type]
    data = made.getvalue()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with making_whole(path, on_disk=False) as stream:
            stream.write(data + _checksum(path, data))
        _make_room(path)
    except OSError as error:
        logger.info("%s is not kept: %s", path, error.strerror or error)


def _make_room(newest: Path) -> None:
    """Remove the oldest files until the folder has at most `MOST` bytes; keep the file `newest`."""
    found = [*newest.parent.glob("*.npz"), *newest.parent.glob(".*.part")]
    files = [(f.stat(), f) for f in found]
    total = sum(status.st_size for status, _ in files)
    for status, file in sorted(files, key=lambda pair: pair[0].st_mtime):
        if total <= MOST:
            return
        if file != newest:
            total -= status.st_size
            file.unlink(missing_ok=True)
