"""Directory beside a model file for the checkpoint and the temporary data of its training."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gp_active_sensing.errors import ActiveSensingError, RunError
from gp_active_sensing.util.files import cannot

NAME = "vbks-checkpoint"
"""Name of the checkpoint's folder."""
_ROWS = "rows-"
_BEGUN = "signature.json"
_DONE = "group-*"


@dataclass(frozen=True)
class CheckpointDirectory:
    """Folders for training a model.

    Args:
        checkpoint: folder of the optimiser's checkpoint. It is kept if the training is interrupted.
        rows: folder for the rows of a large data set. It is removed after the training.
    """

    checkpoint: Path
    rows: Path


def folder_of(file: Path) -> Path:
    """Return the path ``FILE.checkpoint`` for a model file."""
    return file.with_name(f"{file.name}.checkpoint")


@contextmanager
def workplace(folder: Path, *, resume: bool) -> Iterator[CheckpointDirectory]:
    """Provide folders for rows and a checkpoint. Remove both folders after a complete training.

    Other files in `folder` are kept. A lock excludes other processes. Rows that a killed process
    left in `folder` are removed.

    Raises:
        RunError: there is no checkpoint to resume, a checkpoint would be overwritten, another
            process uses the folder, or a folder cannot be made.
    """
    checkpoint = folder / NAME
    if resume and not _begun(checkpoint):
        msg = f"{folder}: there is nothing to resume; give the --out of before"
        raise RunError(msg)
    try:
        checkpoint.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot(folder, "make the folder", error) from error
    with _lock(checkpoint):
        # A folder that has only rows is from a process that was killed before its first step.
        if not resume and any(not path.name.startswith(_ROWS) for path in checkpoint.iterdir()):
            msg = (
                f"{checkpoint}: holds a learning that was begun; go on with --resume, or remove "
                "this folder to begin again"
            )
            raise RunError(msg)
        _remove_rows(checkpoint)
        try:
            yield CheckpointDirectory(checkpoint, _make_rows(checkpoint))
        except BaseException as error:
            if resume or _worth_keeping(checkpoint, error):
                _remove_rows(checkpoint)
            else:
                _remove(checkpoint)
            raise
        _remove(checkpoint)


@contextmanager
def _lock(checkpoint: Path) -> Iterator[None]:
    """Lock a folder until the context or this process ends.

    Do nothing if the system or the disk does not support locks.

    Raises:
        RunError: another process has locked the folder.
    """
    with ExitStack() as stack:
        try:
            import fcntl

            handle = os.open(checkpoint, os.O_RDONLY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            msg = (
                f"{checkpoint}: another learning is going on in it; wait for its end, or give "
                "another --out"
            )
            raise RunError(msg) from None
        except (ImportError, OSError):
            pass
        yield


def _make_rows(checkpoint: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=_ROWS, dir=checkpoint))
    except OSError as error:
        raise cannot(checkpoint, "make a folder", error) from error


def _remove_rows(checkpoint: Path) -> None:
    for path in checkpoint.glob(f"{_ROWS}*"):
        shutil.rmtree(path, ignore_errors=True)


def _remove(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint, ignore_errors=True)
    with suppress(OSError):
        checkpoint.parent.rmdir()


def _begun(checkpoint: Path) -> bool:
    return checkpoint.is_dir() and any(checkpoint.rglob(_BEGUN))


def _worth_keeping(checkpoint: Path, error: BaseException) -> bool:
    """Return whether the same command, run again, could continue from the checkpoint."""
    if isinstance(error, KeyboardInterrupt):
        return _begun(checkpoint)
    # After an error in the request, the same command would fail again.
    vain = isinstance(error, ActiveSensingError) and not isinstance(error, RunError)
    return not vain and _begun(checkpoint) and any(checkpoint.rglob(_DONE))
