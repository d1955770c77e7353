"""Write files of a run; restore those that another program removes, renames or replaces."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Collection
from pathlib import Path
from typing import IO

from gp_active_sensing.util.files import (
    LOCK,
    InUse,
    append_whole,
    cannot,
    is_at,
    keep_beside,
    lock_directory,
    making_whole,
    open_file,
    open_to_append,
    sync_folder,
)

logger = logging.getLogger(__name__)


class LockedFiles:
    """Files that a process writes in a locked directory; threads may share the object.

    Args:
        fixed: names of files that never grow.
    """

    def __init__(self, folder: Path, fixed: Collection[str]) -> None:
        self.streams: dict[str, IO[bytes]] = {}
        self._ends: dict[str, int] = {}
        """Length of each open file after the last write by this object [bytes]."""
        self._folder = folder
        self._fixed = fixed
        self._happened = self._unseen = ""
        self._guard = threading.RLock()

    @property
    def trouble(self) -> str:
        """Description of a change by another program, or of a failed restoration; "" = none."""
        return self._unseen or self._happened

    def lock(self) -> None:
        """Lock the directory. Raises InUse or RunError on failure."""
        with self._guard:
            if LOCK not in self.streams:
                self.streams[LOCK] = lock_directory(self._folder)

    def append(self, name: str, line: bytes) -> None:
        """Append a line to a file. Raises RunError on failure, or InUse."""
        self.lock()
        try:
            with self._guard:
                if self._is_removed(LOCK):
                    self.check()
                if name not in self.streams:
                    self.streams[name] = self._opened(name)
                    sync_folder(self._folder)
                append_whole(self.streams[name], line)
                self._ends[name] += len(line)
        except OSError as error:
            raise cannot(self._at(name), "write", error) from error

    def open_files(self, names: Collection[str]) -> None:
        """Open the files in `names` that exist. Raises RunError on failure."""
        for name in names:
            path = self._at(name)
            try:
                with self._guard:
                    if name not in self.streams and path.exists():
                        self.streams[name] = self._opened(name)
            except OSError as error:
                raise cannot(path, "open", error) from error

    def sync(self, name: str) -> None:
        """Flush a file to disk. Raises RunError on failure."""
        stream = self.streams.get(name)
        try:
            if stream is not None and not stream.closed:
                os.fsync(stream.fileno())
        except ValueError:
            pass  # closed and thereby flushed by another thread
        except OSError as error:
            raise cannot(self._at(name), "put on disk", error) from error

    def check(self) -> None:
        """Restore files that were removed, renamed or replaced, and report them.

        A file that replaced another file is first copied to ``<name>.replaced-<number>``.

        Raises:
            InUse: another process writes to the directory, or wrote while the lock was missing.
            RunError: the directory cannot be read or written.
        """
        with self._guard:
            try:
                gone = [n for n, stream in self.streams.items() if not is_at(stream, self._at(n))]
                gone = [n for n in gone if n not in self._fixed or not self._at(n).exists()]
            except OSError as error:
                self._unseen = f"{self._folder} cannot be looked into: {error}"
                raise cannot(self._folder, "see whether its files are there", error) from error
            self._unseen = ""
            if not gone:
                return
            what = f"{', '.join(gone)} of {self._folder}"
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                if LOCK in gone:
                    gone.remove(LOCK)
                    self._relock()
                for name in gone:
                    self._rewrite(name)
            except (OSError, RuntimeError) as error:
                self._happened = f"{what} cannot be written again after it was removed: {error}"
                if isinstance(error, InUse):
                    raise
                raise cannot(self._folder, "write again what was removed", error) from error
            self._happened = (
                f"{what} had been removed, renamed or replaced under way; written again"
            )
            logger.error("%s", self._happened)

    def close(self, name: str | None = None) -> None:
        """Close a file, or all files and then the lock. Raises OSError if data are lost."""
        failed: OSError | None = None
        with self._guard:
            names = [*self.streams] if name is None else [name]
            for each in sorted(names, key=LOCK.__eq__):
                try:
                    if (stream := self.streams.pop(each, None)) is not None:
                        stream.close()
                except OSError as error:
                    failed = error
        if failed is not None:
            raise failed

    def _at(self, name: str) -> Path:
        return self._folder / name

    def _is_removed(self, name: str) -> bool:
        try:
            return not is_at(self.streams[name], self._at(name))
        except OSError:
            return False

    def _opened(self, name: str) -> IO[bytes]:
        path = self._at(name)
        stream = open_file(path) if name in self._fixed else open_to_append(path)
        self._ends[name] = os.fstat(stream.fileno()).st_size
        return stream

    def _relock(self) -> None:
        """Lock again. Raises InUse if another process has the lock or wrote in the meantime."""
        lock = lock_directory(self._folder)
        for name, end in self._ends.items():
            stream = self.streams.get(name)
            if stream is not None and os.fstat(stream.fileno()).st_size != end:
                lock.close()
                msg = (
                    f"{self._at(name)}: another process wrote here after {LOCK} was removed; "
                    "what is in the directory stays as it left it"
                )
                raise InUse(msg)
        self.streams[LOCK].close()
        self.streams[LOCK] = lock

    def _rewrite(self, name: str) -> None:
        path, stream = self._at(name), self.streams[name]
        if path.exists():
            keep_beside(path, "replaced")
        stream.seek(0)
        with making_whole(path) as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)
        self.streams[name] = self._opened(name)
        stream.close()
