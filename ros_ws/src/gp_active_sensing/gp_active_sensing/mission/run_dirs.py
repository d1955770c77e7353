"""Create the run directory of a new mission, or open the run directory of a resumed mission."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.belief.run_copy import as_begun, keep_model, with_mark
from gp_active_sensing.config import from_mapping, to_mapping
from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.restore import is_over, stopped_in_order
from gp_active_sensing.records.journal import unseal
from gp_active_sensing.records.run_directory import CONFIG, JOURNAL, RunDirectory
from gp_active_sensing.util.files import (
    InUse,
    cannot,
    differences,
    json_ready,
    open_file,
    unused,
    write_whole,
)

logger = logging.getLogger(__name__)

AUTO = "auto"
Events = Sequence[dict[str, Any]]

_END = 1 << 20
"""Number of bytes read at the start and at the end of a journal."""


def runs_folder() -> Path:
    """Return the folder of runs for `run_dir: auto`, in ROS_HOME or else in ~/.ros."""
    home = os.environ.get("ROS_HOME")
    return (Path(home) if home else Path.home() / ".ros") / "gp_active_sensing"


def _note_of(node: str, domain: int) -> Path:
    return runs_folder() / f".run_of_{domain}{node.replace('/', '.')}"


def note_run(node: str, domain: int, run: Path | None) -> None:
    """Write the path of a node's run directory to a file for other programs of this user.

    A topic would be unsafe, since other users could publish a path. `node` is the fully qualified
    name of the node; `run` None = the node has no run directory.

    Raises:
        RunError: the file cannot be written.
    """
    path = _note_of(node, domain)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot(path.parent, "make", error) from error
    write_whole(path, json.dumps({"run_dir": None if run is None else str(run.absolute())}))


def drop_note(node: str, domain: int) -> None:
    """Remove the file that `note_run` wrote for a node."""
    with contextlib.suppress(OSError):
        _note_of(node, domain).unlink()


def noted_run(node: str, domain: int) -> tuple[Path | None, bool]:
    """Return the run directory from the file of `note_run`, and whether the file exists.

    Raises:
        RunError: the file cannot be read, is damaged, or is writable by other users.
    """
    path = _note_of(node, domain)
    try:
        with open_file(path) as stream:
            about, text = os.fstat(stream.fileno()), stream.read(1 << 16)
    except FileNotFoundError:
        return None, False
    except OSError as error:
        raise cannot(path, "read", error) from error
    if os.name == "posix" and (about.st_mode & 0o022 or about.st_uid != os.getuid()):
        msg = (
            f"{path}: expected a file that only you can write, got mode {about.st_mode & 0o777:o} "
            f"of user {about.st_uid}. Remove the file and start {node} again, or set run_dir"
        )
        raise RunError(msg)
    try:
        run = json.loads(text)["run_dir"]
        return (None if run is None else Path(run)), True
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        msg = f"{path}: expected the run directory of {node}; remove the file and start it again"
        raise RunError(msg) from error


class _AnotherMission(RunError):
    """Error: the directory has an intact mission that must not be resumed."""


def choose_run(
    run_dir: str, config: Mapping[str, Any], now: datetime, *, resume: bool
) -> tuple[RunDirectory | None, Events]:
    """Return the run directory, and the events of the mission to resume ([] = a new mission).

    Raises:
        RunError: the directory has a mission that is over, a mission of another configuration, or
            other files.
    """
    if not run_dir:
        return None, []
    if run_dir != AUTO:
        return _named(Path(run_dir), config, resume=resume)
    folder = runs_folder()
    begun = _begun(folder)
    for mission in begun if resume else ():
        if mission.closed:
            continue
        try:
            run, events = _named(mission.path, config, resume=True)
        except _AnotherMission as error:
            logger.info("skipped: %s", error)
            continue
        except RunError as error:
            logger.warning(
                "a new mission begins, since the newest unfinished mission in %s cannot be "
                "continued: %s",
                folder,
                error,
            )
            break
        if not stopped_in_order(events):
            return run, events
        run.close()
    # Nodes that start in the same second get different directories.
    new = _created(unused(folder / f"{now:%Y%m%dT%H%M%S}"), config)
    new.order = 1 + max((mission.order for mission in begun), default=0)
    return new, []


@dataclass(frozen=True, order=True)
class _FoundMission:
    """Mission in a run directory; missions are ordered by age.

    Args:
        order: number that increases with each mission in the folder; 0 = unknown.
        changed_ns: time of the last write to the journal [ns].
        closed: True = the mission is over, or its last process was stopped and not killed.
    """

    order: int
    changed_ns: int
    path: Path
    closed: bool = field(compare=False)


def _begun(folder: Path) -> list[_FoundMission]:
    """Return the missions in a folder, newest first."""
    found = []
    for path in folder.glob("*"):
        try:
            if not (path / CONFIG).is_file() or not (path / JOURNAL).is_file():
                continue
            with open_file(path / JOURNAL) as stream:
                first = _event(stream.readline(_END))
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - _END))
                *_, last, _ = [b"", *stream.read().split(b"\n")]
            changed_ns = (path / JOURNAL).stat().st_mtime_ns
        except (OSError, ValueError) as error:
            logger.warning("%s is skipped: %s", path, error)
            continue
        if size:  # empty after a kill at the start
            order = first.get("order", 0)
            closed = _event(last).get("event") in ("end", "stopped")
            found.append(
                _FoundMission(order if isinstance(order, int) else 0, changed_ns, path, closed)
            )
    return sorted(found, reverse=True)


def _event(line: bytes) -> dict[str, Any]:
    found = unseal(line.rstrip(b"\n"))
    return {} if found is None else found[0]


def _named(path: Path, config: Mapping[str, Any], *, resume: bool) -> tuple[RunDirectory, Events]:
    if not resume or not path.is_dir() or not any(path.glob("[!.]*")):
        return _created(path, config), []
    with _hint():
        run = RunDirectory.begin_again(path)
    try:
        return run, _events(run, config)
    except RunError:
        run.close()
        raise


def _created(path: Path, config: Mapping[str, Any]) -> RunDirectory:
    """Create a run directory; if the belief has a file of kernels, copy this file into it."""
    belief = _belief_of(config)
    if belief.model is None:
        with _hint():
            return RunDirectory.create(path, config)
    # A run that is started again still has the copy.
    belief = with_mark(belief, None if belief.model_mark is None else path)
    with _hint():
        run = RunDirectory.create(path, {**config, "belief": to_mapping(belief)})
    keep_model(belief, path)
    return run


def _belief_of(config: Mapping[str, Any]) -> BeliefConfig:
    return from_mapping(BeliefConfig, config.get("belief"), path="belief")


def release(run: RunDirectory | None, *, begun: bool) -> None:
    """Release an unused run directory; remove it if it is new (`begun`)."""
    if run is None:
        return
    if begun:
        run.remove()
    run.close()


@contextlib.contextmanager
def _hint() -> Iterator[None]:
    """Name the parameter `run_dir` in the error about a directory that is in use."""
    try:
        yield
    except InUse as error:
        msg = f"run_dir: {error}"
        raise _AnotherMission(msg) from error


def _events(run: RunDirectory, config: Mapping[str, Any]) -> Events:
    """Return the events of the mission to resume; raise RunError if it cannot be resumed."""
    path = run.path
    run.repair()
    events = run.journal()
    why = is_over(events)
    if not why and events and events[-1].get("event") == "gap":  # the end's event may be lost
        finished = run.summary().get("status") == "finished"
        why = "its summary says so" if finished else ""
    if why:
        msg = f"run_dir: {path} holds a mission that is over ({why}); name another directory"
        raise _AnotherMission(msg)
    config = dict(config)
    if _belief_of(config).model is not None:
        stored = run.config.get("belief")
        if isinstance(stored, Mapping):
            config["belief"] = to_mapping(as_begun(_belief_of(config), stored, path))
    other = sorted(differences(json_ready(run.config), json_ready(config)))
    if other:
        msg = (
            f"run_dir: {path} holds a mission of another configuration; different: "
            f"{', '.join(other)}. Start the node with the same parameters to go on with it, or "
            "name another directory"
        )
        raise _AnotherMission(msg)
    return events
