"""Directory for the checkpoint and rows of a learning run; leaves other files alone."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gp_active_sensing.errors import ActiveSensingError, RunError
from gp_active_sensing.util.files import cannot, write_whole

NAME = "vbks-checkpoint"
"""Name of our folder inside the user's folder."""
_ROWS = "rows-"
_BEGUN = "signature.json"
_DONE = "group-*"
_FINISHED = "finished"
"""File that says that nothing is left to do in a checkpoint that stays."""


@dataclass(frozen=True)
class CheckpointDirectory:
    """Two folders.

    Args:
        checkpoint: of the optimisation; stays where something is left to do.
        rows: of a long log; never stays.
    """

    checkpoint: Path
    rows: Path


def folder_of(file: Path) -> Path:
    """Return the folder beside a model that has its checkpoint, unless another one is named."""
    return file.with_name(f"{file.name}.checkpoint")


@contextmanager
def claimed_name(stem: str, *, resume: bool) -> Iterator[Path]:
    """Have a name for a model that nobody else takes meanwhile: its folder is made.

    Args:
        stem: the name is this with ``-kernels``, a number where that is taken, and ``.npz``.
        resume: it is that of a learning that was begun.

    Raises:
        RunError: the folder cannot be made; or nothing, or more than one, can be resumed.
    """
    file = _begun_name(stem) if resume else _free_name(stem)
    try:
        yield file
    finally:
        with suppress(OSError):  # it is not empty: there is something to go on with
            folder_of(file).rmdir()


@contextmanager
def workplace(folder: Path, *, keep: bool, resume: bool) -> Iterator[CheckpointDirectory]:
    """Have a place for rows and checkpoints; remove it at the end, unless something is left to do.

    Only what is made here is removed: nothing else that is in the folder. Rows that a killed
    process has left go too, as nobody else can be at work in a folder that this one has.

    Args:
        folder: which.
        keep: it is the user's own, and the checkpoint stays.
        resume: go on with what is there.

    Raises:
        RunError: there is nothing to resume, something that would be overwritten, another process
            is at work there, or a folder cannot be made.
    """
    checkpoint = folder / NAME
    if resume and not _begun(checkpoint):
        msg = f"{folder}: there is nothing to resume; give the --out or --checkpoint of before"
        raise RunError(msg)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    there = False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            checkpoint.mkdir()
        except FileExistsError:
            if not checkpoint.is_dir():
                raise
            there = True
    except OSError as error:
        _remove_empty(made)
        raise cannot(folder, "make the folder", error) from error
    with _lock(checkpoint) as certain:
        # Where it is empty but for rows, a learning was killed before it had begun.
        empty = all(path.name.startswith(_ROWS) for path in checkpoint.iterdir())
        if there and not resume and not (empty and certain):
            raise _taken(checkpoint)
        _remove_rows(checkpoint)
        try:
            yield CheckpointDirectory(checkpoint, _make_rows(checkpoint))
            if keep:
                _write_finished(checkpoint)
        except BaseException as error:
            if not resume and not _worth_keeping(checkpoint, error):
                shutil.rmtree(checkpoint, ignore_errors=True)
                _remove_empty(made)
            raise
        finally:
            _remove_rows(checkpoint)
        if not keep:
            shutil.rmtree(checkpoint, ignore_errors=True)
            _remove_empty([folder] if there else made)


@contextmanager
def _lock(checkpoint: Path) -> Iterator[bool]:
    """Have a folder to oneself, until the end or until this process is gone.

    Yields:
        Whether that is certain: some systems and disks have no locks, and nobody is kept out.

    Raises:
        RunError: another process has it.
    """
    with ExitStack() as stack:
        try:
            import fcntl

            handle = os.open(checkpoint, os.O_RDONLY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            certain = True
        except BlockingIOError:
            msg = (
                f"{checkpoint}: another learning is going on in it; wait for its end, or give "
                "another --out or --checkpoint"
            )
            raise RunError(msg) from None
        except (ImportError, OSError):
            certain = False
        yield certain


def _make_rows(checkpoint: Path) -> Path:
    """Return a new folder for rows."""
    try:
        return Path(tempfile.mkdtemp(prefix=_ROWS, dir=checkpoint))
    except OSError as error:
        raise cannot(checkpoint, "make a folder", error) from error


def _remove_rows(checkpoint: Path) -> None:
    """Remove the rows of this process, and what a killed one has left."""
    for path in checkpoint.glob(f"{_ROWS}*"):
        shutil.rmtree(path, ignore_errors=True)


def _taken(checkpoint: Path) -> RunError:
    """Return why nothing new can be begun in a checkpoint."""
    if (checkpoint / _FINISHED).exists():
        msg = (
            f"{checkpoint}: holds a learning that is finished, and its model is written; "
            "--resume writes it again, or remove this folder to begin again"
        )
    elif _begun(checkpoint):
        msg = (
            f"{checkpoint}: holds a learning that was begun; go on with --resume, or remove this "
            "folder to begin again"
        )
    else:
        msg = (
            f"{checkpoint}: holds no checkpoint, or a learning has just begun in it; where none is "
            "going on, remove this folder to begin again"
        )
    return RunError(msg)


def _write_finished(checkpoint: Path) -> None:
    """Say in a checkpoint that stays that nothing is left to do."""
    write_whole(checkpoint / _FINISHED, "the model is written\n")


def _begun(checkpoint: Path) -> bool:
    return checkpoint.is_dir() and any(checkpoint.rglob(_BEGUN))


def _worth_keeping(checkpoint: Path, error: BaseException) -> bool:
    """Return whether the same command could go on from here."""
    if isinstance(error, KeyboardInterrupt):
        return _begun(checkpoint)
    # What was asked for cannot be done: there is nothing to go on with.
    vain = isinstance(error, ActiveSensingError) and not isinstance(error, RunError)
    return not vain and _begun(checkpoint) and any(checkpoint.rglob(_DONE))


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders, the innermost first, that nobody has put anything into."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _numbered(stem: str) -> Iterator[Path]:
    number = 1
    while True:
        yield Path(f"{stem}-kernels{'' if number == 1 else f'-{number}'}.npz")
        number += 1


def _free_name(stem: str) -> Path:
    for file in _numbered(stem):
        if file.exists():
            continue
        folder = folder_of(file)
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise cannot(folder, "make the folder", error) from error
        if not file.exists():
            return file
        folder.rmdir()  # another learning has ended just now
    raise AssertionError


def _begun_name(stem: str) -> Path:
    found = []
    for file in _numbered(stem):
        folder = folder_of(file)
        if not file.exists() and not folder.exists():
            break
        if _begun(folder / NAME):
            found.append(file)
    if len(found) == 1:
        return found[0]
    if found:
        msg = f"{len(found)} learnings can be resumed: say which with --out: "
        msg += ", ".join(map(str, found))
    else:
        msg = f"{folder_of(next(_numbered(stem)))}: there is nothing to resume; give the --out or "
        msg += "--checkpoint of before"
    raise RunError(msg)
