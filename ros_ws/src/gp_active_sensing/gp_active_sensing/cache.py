"""Results that are dear to compute, kept on disk between runs; never a reason to fail."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["cache_folder", "cached_arrays"]

logger = logging.getLogger(__name__)

MOST = 1_000_000_000
"""Bytes that the folder may hold."""

Arrays = dict[str, npt.NDArray[np.float64]]


def cache_folder() -> Path:
    """Return the folder of the cache; it need not exist.

    ``$XDG_CACHE_HOME/gp_active_sensing``, and without that variable ``~/.cache/gp_active_sensing``.
    A relative path in the variable does not count, as its specification says: the cache would lie
    in whatever folder a run is started in.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = given if given.is_absolute() else Path(os.path.expanduser("~"), ".cache")
    if not base.is_absolute():  # a user without a home, as in a container
        base = Path(tempfile.gettempdir(), f"cache-{os.getuid()}")
    return base / "gp_active_sensing"


def cached_arrays(
    kind: str,
    version: int,
    key: Mapping[str, object],
    names: Sequence[str],
    compute: Callable[[], Arrays],
    *,
    keep: bool = True,
) -> Arrays:
    """Return what `compute` returns, from disk where it has been computed before.

    A file that is damaged, or a folder that cannot be written, costs the time of computing only.

    Args:
        kind: first part of the file's name.
        version: of the computation; raise it when the same input gives another result.
        key: everything the result depends on: arrays, numbers, text.
        names: of the arrays that `compute` returns.
        compute: called when the cache has nothing.
        keep: False where computing takes no longer than reading.
    """
    if not keep:
        return compute()
    path = cache_folder() / f"{kind}-{version}-{_digest(key)}.npz"
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
            found = {name: np.asarray(kept[name], dtype=np.float64) for name in names}
        logger.info("%s taken from %s", kind, path)
        return found
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        logger.warning("%s cannot be read (%s); computing again", path, error)
    found = compute()
    _write(path, found)
    return found


def _digest(key: Mapping[str, object]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(key.items()):
        array = np.ascontiguousarray(value)
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:32]


def _write(path: Path, arrays: Arrays) -> None:
    """Write beside, then rename: another process sees a whole file or none."""
    beside = path.with_name(f".{path.stem}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
        os.replace(beside, path)
        _make_room(path)
    except OSError as error:
        logger.info("%s is not kept: %s", path, error.strerror or error)
        try:
            beside.unlink(missing_ok=True)
        except OSError:
            pass


def _make_room(newest: Path) -> None:
    """Remove the files that were made longest ago, beyond so many bytes; never the newest."""
    files = [(f.stat(), f) for f in newest.parent.glob("*.npz")]
    total = sum(status.st_size for status, _ in files)
    for status, file in sorted(files, key=lambda pair: pair[0].st_mtime):
        if total <= MOST:
            return
        if file != newest:
            total -= status.st_size
            file.unlink(missing_ok=True)
