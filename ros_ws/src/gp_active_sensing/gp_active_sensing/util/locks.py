"""Lock file of a directory: held by one process, and released when it ends.

The lock is on a file of its own, which nobody replaces and which stays when the directory is given
back. A process that is killed leaves the file and no lock.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import IO

from gp_active_sensing.errors import RunError
from gp_active_sensing.util.files import cannot

__all__ = ["LOCK", "InUse", "is_at", "take_lock"]

logger = logging.getLogger(__name__)

LOCK = ".lock"
"""Name of the file in the directory; it holds the number of the process that has the lock."""


class InUse(RunError):
    """Another process, or another writer in this one, has the directory."""


def take_lock(folder: Path) -> IO[bytes]:
    """Return the stream that holds the lock of a directory; closing it gives the lock back.

    Raises:
        InUse: somebody else has it.
        RunError: there is no such directory, or nothing can be written there.
    """
    path = folder / LOCK
    while True:
        stream = _opened(path)
        try:
            _lock(stream, folder)
            if not is_at(stream, path):  # removed between opening and locking: by its last holder
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


def _opened(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
    except OSError as error:
        raise cannot(path, "open", error) from error


def _lock(stream: IO[bytes], folder: Path) -> None:
    """Lock a file. Raises InUse; a system or disk that has no locks is said, and goes without."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = stream.read(20).decode("ascii", "replace").strip()
        by = f"process {holder}" if holder.isdigit() else "another process"
        msg = f"{folder} is in use by {by}; wait for its end, or name another directory"
        raise InUse(msg) from None
    except OSError as error:
        logger.warning("%s cannot be locked (%s): let one process write there", folder, error)


def is_at(stream: IO[bytes], path: Path) -> bool:
    """Return whether a file still has its name."""
    mine = os.fstat(stream.fileno())
    try:
        there = path.stat(follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)
