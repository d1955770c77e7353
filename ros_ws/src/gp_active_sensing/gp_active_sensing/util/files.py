"""Crash-safe file writing, and locks of directories.

Readers of line-based files ignore a last line that was cut short. A damaged file is copied before
it is repaired.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import math
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from gp_active_sensing.errors import RunError

logger = logging.getLogger(__name__)

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
"""Flag of ``os.open`` that refuses symbolic links; 0 on a system without this flag."""

MOST_BYTES = 1 << 32
"""Largest size of a file that is read at once [bytes]."""


def cannot(path: Path, what: str, error: BaseException) -> RunError:
    """Return the RunError for a file that cannot be read or written, with the reason."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return RunError(f"{path}: cannot {what}: {why}")


def write_whole(path: Path, text: str | bytes) -> Path:
    """Replace a file atomically. Raises RunError."""
    try:
        with making_whole(path) as stream:
            stream.write(text.encode("utf-8") if isinstance(text, str) else text)
    except OSError as error:
        raise cannot(path, "write", error) from error
    return path


@contextlib.contextmanager
def making_whole(path: Path, *, on_disk: bool = True) -> Iterator[IO[bytes]]:
    """Yield a stream to a temporary file, which is renamed to `path` when complete.

    A symbolic link at `path` is replaced; the target of the link stays unchanged.

    Args:
        path: path of the file; an older file is replaced.
        on_disk: True = sync the file and its name to disk, to survive a power cut.

    Raises:
        OSError: the file cannot be written; the temporary file is removed.
    """
    beside = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW
    stream = os.fdopen(os.open(beside, flags, 0o666), "wb")
    try:
        with stream:
            yield stream
            stream.flush()
            if on_disk:
                os.fsync(stream.fileno())
        os.replace(beside, path)
        if on_disk:
            sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def open_file(path: Path) -> IO[bytes]:
    """Open a regular file for reading. Raises OSError for a folder, pipe or device."""
    stream = open(path, "rb", opener=_opened_at_once)
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "expected a file, got a pipe, a device or a socket", str(path))
    return stream


def _opened_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_whole(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file. Raises OSError if the file has more than `most` bytes."""
    with open_file(path) as stream:
        if os.fstat(stream.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"expected at most {most >> 20} MiB, got more", str(path))
        return stream.read()


def refuse_link(path: Path) -> None:
    """Raise RunError if a path is a symbolic link."""
    if path.is_symlink():
        msg = f"{path}: expected a file, got a link; nothing is changed: remove it"
        raise RunError(msg)


def open_to_append(path: Path) -> IO[bytes]:
    """Open a file for unbuffered appending and reading. Raises OSError for a symbolic link."""
    return open(path, "a+b", buffering=0, opener=_opened_itself)


def _opened_itself(path: str, flags: int) -> int:
    return os.open(path, flags | _NOFOLLOW, 0o666)


def append_whole(stream: IO[bytes], data: bytes) -> None:
    """Append all data to an unbuffered file; after an OSError nothing is appended."""
    before = os.fstat(stream.fileno()).st_size
    try:
        if (written := stream.write(data)) != len(data):
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} ({written} of {len(data)} B)")
    except OSError:
        with contextlib.suppress(OSError):  # the file is a device
            os.ftruncate(stream.fileno(), before)
        raise


def sync_folder(path: Path) -> None:
    """Sync the list of a folder's files to disk; do nothing on a system that is not POSIX.

    Raises:
        OSError: the folder cannot be synced.
    """
    if os.name != "posix":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def drop_damage(path: Path, sound: Callable[[dict[str, Any]], bool] = lambda item: True) -> bool:
    """Remove damaged lines from a file of JSON lines; return whether lines were removed.

    A half-written last line is cut off. Before a complete line is removed, the file is copied.
    `sound` returns whether an object is valid in this file.

    Raises:
        RunError: the file cannot be read or written.
    """
    refuse_link(path)
    try:
        data = read_whole(path) if path.exists() else b""
    except OSError as error:
        raise cannot(path, "read", error) from error
    *lines, rest = data.split(b"\n")
    whole = [line for line in lines if (item := json_object(line)) is not None and sound(item)]
    damaged = len(lines) - len(whole)
    if damaged:
        kept = keep_beside(path, "damaged")
        logger.error(
            "%s: left out %d damaged lines; the damaged file is kept in %s", path, damaged, kept
        )
        write_whole(path, b"".join(line + b"\n" for line in whole))
    elif rest:
        cut_off(path, len(rest))
    return bool(damaged or rest)


def cut_off(path: Path, rest: int, whole: int | None = None) -> None:
    """Cut off the half-written last line (`rest` bytes) of a file.

    `whole` is the final size of the file [bytes]; None = the size without the half-written line. A
    last line that contains NUL bytes, as after a power cut, is first copied to another file.

    Raises:
        RunError: the file cannot be read or written.
    """
    try:
        with open(path, "rb+", opener=_opened_itself) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(size - rest)
            if b"\0" in (end := stream.read()):
                keep_beside(path, "cut", end)
            stream.truncate(size - rest if whole is None else whole)
            os.fsync(stream.fileno())
    except OSError as error:
        raise cannot(path, "remove its half-written end", error) from error
    if rest:
        logger.warning("%s: removed a half-written last line (%d bytes)", path, rest)


def keep_beside(path: Path, word: str, data: bytes | None = None) -> Path:
    """Copy a file to the first unused name ``<name>.<word>-<number>``; return the path of the copy.

    With `data`, these bytes are written instead of the content of the file.

    Raises:
        RunError: the file or its copy cannot be read or written.
    """
    number = 0
    try:
        content = read_whole(path) if data is None else data
        while True:
            number += 1
            beside = path.with_name(f"{path.stem}.{word}-{number}{path.suffix}")
            with contextlib.suppress(FileExistsError), beside.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
                return beside
    except OSError as error:
        raise cannot(path, "keep a copy", error) from error


def json_object(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line; None for a damaged line."""
    try:
        item = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) else None


def read_lines(
    path: Path, keep: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Return the objects in a file of JSON lines, and whether the last line was cut short.

    A missing file has no lines. With `keep`, each object is replaced by ``keep(object)``.

    Raises:
        RunError: the file cannot be read, or a complete line is not a JSON object.
    """
    try:
        data = read_whole(path)
    except FileNotFoundError:
        return [], False
    except OSError as error:
        raise cannot(path, "read", error) from error
    *lines, rest = data.split(b"\n")
    items = []
    for number, line in enumerate(lines, start=1):
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            msg = f"{path}, line {number}: expected a JSON object ({error})"
            raise RunError(msg) from error
        if not isinstance(item, dict):
            msg = f"{path}, line {number}: expected an object, got {type(item).__name__}"
            raise RunError(msg)
        items.append(item if keep is None else keep(item))
    return items, bool(rest)


def json_ready(value: Any) -> Any:
    """Return plain data for JSON; infinite numbers and NaN become text ("nan", "inf")."""
    if isinstance(value, Mapping):
        return {str(k): json_ready(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return json_ready(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [
            json_ready(v) for v in (sorted(value) if isinstance(value, set | frozenset) else value)
        ]
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Path):
        return str(value)
    return value


def unused(path: Path) -> Path:
    """Return a path that does not exist: `path`, or `path` with -2, -3 … at its end."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Return the dotted keys at which two configurations differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found = []
        for key in {*old, *new}:
            inner = f"{path}.{key}" if path else str(key)
            found += differences(old.get(key), new.get(key), inner)
        return found
    return [] if old == new else [path]


LOCK = ".lock"
"""Name of a directory's lock file, which contains the id of the locking process."""


class InUse(RunError):
    """Error for a directory that another process or writer has locked."""


def lock_directory(folder: Path) -> IO[bytes]:
    """Lock a directory; close the returned stream to unlock the directory.

    Raises:
        InUse: another process or writer has the lock.
        RunError: the directory does not exist or is not writable.
    """
    path = folder / LOCK
    while True:
        stream = _opened(path)
        try:
            _lock(stream, folder)
            if not is_at(stream, path):  # removed between opening and locking
                stream.close()
                continue
            stream.truncate(0)
            stream.write(f"{os.getpid()}\n".encode())
        except OSError as error:
            stream.close()
            raise cannot(path, "write", error) from error
        except BaseException:
            stream.close()
            raise
        return stream


def is_unlocked(folder: Path) -> bool:
    """Return whether a directory has a lock file that no process on this machine locks."""
    try:
        import fcntl

        with open_file(folder / LOCK) as stream:
            fcntl.flock(stream.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (ImportError, OSError):  # locked, or unknown
        return False
    return True


def _opened(path: Path) -> IO[bytes]:
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o666)
        return os.fdopen(number, "r+b", buffering=0)
    except OSError as error:
        raise cannot(path, "open", error) from error


def _lock(stream: IO[bytes], folder: Path) -> None:
    """Lock a file; log a warning on a file system without locks. Raises InUse."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = stream.read(20).decode("ascii", "replace").strip()
        by = f"process {holder}" if holder.isdigit() else "another process"
        msg = f"{folder} is in use by {by}; wait for its end, or name another directory"
        raise InUse(msg) from None
    except OSError as error:
        logger.warning("%s cannot be locked (%s): let only one process write there", folder, error)


def is_at(stream: IO[bytes], path: Path) -> bool:
    """Return whether the file at `path` is still the file of the open `stream`."""
    mine = os.fstat(stream.fileno())
    try:
        there = path.stat(follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)
