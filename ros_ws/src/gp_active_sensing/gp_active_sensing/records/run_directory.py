"""Run directory: configuration, journal of events, one record per stage, summary.

Each line is flushed before the next one, so that a killed run leaves a readable directory. A
half-written last line is reported, and removed when the run is resumed. A writer locks the
directory, see `gp_active_sensing.util.files`.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from gp_active_sensing.belief.run_copy import MODEL
from gp_active_sensing.errors import ConfigError, RunError, one_line, suggest
from gp_active_sensing.records.journal import (
    Events,
    JournalContents,
    read_journal,
    repair_journal,
    seal,
    unseal,
)
from gp_active_sensing.records.locked_files import LockedFiles
from gp_active_sensing.types import Plan
from gp_active_sensing.util.files import (
    LOCK,
    cannot,
    drop_damage,
    json_ready,
    open_file,
    read_lines,
    read_whole,
    write_whole,
)
from gp_active_sensing.util.wording import counted
from gp_active_sensing.util.yaml_files import load_yaml

logger = logging.getLogger(__name__)

CONFIG = "config.yaml"
JOURNAL = "journal.jsonl"
RECORDS = "records.jsonl"
SUMMARY = "summary.json"
TRUTH = "truth.jsonl"
PAGE = "report.html"
MAP = "map"
"""Prefix of the names of the map files that are written for other programs."""
_MOST_LISTED = 20
"""Largest number of runs in a message."""
_MOST_OF_START = 1 << 20
"""Largest size of the first event in a journal [bytes]."""
MOST_OF_SUMMARY = 1 << 28
"""Largest size of a summary [bytes]."""


class RunDirectory:
    """Directory of one run; `create` and `begin_again` open it for writing, `open` for reading.

    Args:
        path: the directory, which exists.
        config: content of ``config.yaml``.
    """

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.config = dict(config)
        self.order = 0
        """Rank of this run among the runs of its parent folder, by start time; 0 = not known."""
        self.cut_short: list[str] = []
        """Names of files with a half-written last line."""
        self.damage: list[str] = []
        """Sentence on each damaged part of the journal."""
        self._files = LockedFiles(path, (CONFIG, MODEL))
        self._number: int | None = None
        """Number of the last event in the journal; None = not known yet."""
        self._journalled: JournalContents | None = None
        """Contents of the journal after its repair, stored until `journal` is called."""

    @classmethod
    def create(cls, path: Path | str, config: Mapping[str, Any]) -> RunDirectory:
        """Make a new run directory (and its parents) and write the configuration.

        Raises:
            RunError: the directory is not empty, or cannot be made or written.
        """
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot(path, "make the run directory", error) from error
        run = cls(path, config)
        run.lock()
        try:
            run._begin()
        except BaseException:
            run.close()
            raise
        return run

    def _begin(self) -> None:
        try:
            there = [entry for entry in self.path.iterdir() if entry.name not in (MODEL, LOCK)]
            # Temporary files of a killed process.
            unfinished = [e for e in there if e.name[0] == "." and e.suffix == ".part"]
            for entry in unfinished:
                entry.unlink()
        except OSError as error:
            raise cannot(self.path, "make the run directory", error) from error
        if len(there) > len(unfinished):
            msg = (
                f"run directory {self.path} is not empty; name another one with --out, "
                "or continue its run with --resume"
            )
            raise RunError(msg)
        text = yaml.safe_dump(json_ready(self.config), sort_keys=False, allow_unicode=True)
        write_whole(self.path / CONFIG, text)
        self._number = 0

    @classmethod
    def open(cls, path: Path | str) -> RunDirectory:
        """Open the directory of an earlier run for reading. Raises RunError without a run."""
        path = _existing(path)
        try:
            return cls(path, load_yaml(path / CONFIG))
        except ConfigError as error:
            if not (path / CONFIG).exists():
                check_single(path)
                msg = f"{path} is not a run directory: it has no {CONFIG}"
                raise RunError(msg) from None
            raise RunError(str(error)) from error

    @classmethod
    def begin_again(cls, path: Path | str) -> RunDirectory:
        """Open and lock the directory of an earlier run for writing.

        Raises:
            InUse: another process has the lock.
            RunError: the directory or a readable configuration is missing.
        """
        run = cls(_existing(path), {})
        if not (run.path / CONFIG).exists():  # no lock file in a foreign directory
            return cls.open(path)
        run.lock()
        try:
            run.config = cls.open(path).config
        except BaseException:
            run.close()
            raise
        return run

    def lock(self) -> None:
        """Lock the directory until `close` or the end of the process. Raises InUse."""
        self._files.lock()

    # -- writing -------------------------------------------------------------------------------

    def append_event(self, event: Mapping[str, Any]) -> None:
        """Append an event to the journal. Raises RunError on failure."""
        self.lock()
        if self._number is None:
            self._number = read_journal(self.path / JOURNAL).number
        self._journalled = None
        self._files.append(JOURNAL, seal(json_ready(dict(event)), self._number + 1))
        self._number += 1

    def append_record(self, record: Mapping[str, Any]) -> None:
        """Append the record of a stage. Raises RunError on failure."""
        self._files.append(RECORDS, _line(record))

    def append_truth(self, item: Mapping[str, Any]) -> None:
        """Append ``seconds`` and ``values`` of live traffic. Raises RunError on failure."""
        self._files.append(TRUTH, _line(item))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Replace ``summary.json``. Raises RunError on failure."""
        text = json.dumps(json_ready(dict(summary)), indent=2, allow_nan=False)
        self.write_file(SUMMARY, text + "\n")

    def write_file(self, name: str, content: str | bytes) -> None:
        """Replace a file of this run, such as a map file. Raises RunError on failure."""
        self.lock()
        self.check()
        write_whole(self.path / name, content)

    def forget_records(self) -> None:
        """Empty ``records.jsonl`` and ``truth.jsonl``; a resumed simulation writes them again."""
        self.lock()
        self._files.close(RECORDS)
        write_whole(self.path / RECORDS, "")
        self._files.close(TRUTH)
        if (self.path / TRUTH).exists():
            write_whole(self.path / TRUTH, "")

    def clear(self) -> None:
        """Remove the files of a run, but keep the copy of its model. Raises RunError."""
        maps = [path.name for path in self.path.glob(f"{MAP}[._-]*")]
        self._remove((*maps, SUMMARY, PAGE, TRUTH, RECORDS, JOURNAL, CONFIG))

    def remove(self) -> None:
        """Remove the files of a run, and the directory if it is then empty. Raises RunError."""
        self.clear()
        self._remove((MODEL, LOCK))
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _remove(self, names: Sequence[str]) -> None:
        self.lock()
        for name in names:
            if name != LOCK:
                self._files.close(name)
            try:
                (self.path / name).unlink(missing_ok=True)
            except OSError as error:
                raise cannot(self.path / name, "remove", error) from error
        self._number = self._journalled = None

    def repair(self, *, until_damage: bool = False) -> None:
        """Remove damaged lines from the journal and the records, see `repair_journal`.

        Args:
            until_damage: also remove all lines of the journal after the first damage.

        Raises:
            RunError: a file cannot be read or written.
        """
        self.lock()
        self._files.close(RECORDS)
        drop_damage(self.path / RECORDS, _is_stage_record)
        self._files.close(JOURNAL)
        self._journalled = repair_journal(self.path / JOURNAL, until_damage=until_damage)
        self._number = self._journalled.number

    def sync(self) -> None:
        """Flush the journal to disk. Raises RunError on failure."""
        self.check()
        self._files.sync(JOURNAL)

    def open_files(self) -> None:
        """Open the existing files, so that `check` can restore them. Raises RunError on failure."""
        self.lock()
        self._files.open_files((CONFIG, MODEL, TRUTH, RECORDS, JOURNAL))

    def check(self) -> None:
        """Restore files that were removed, renamed or replaced. Raises RunError on failure."""
        self._files.check()

    @property
    def trouble(self) -> str:
        """Description of a change to the directory by another program; "" = no change."""
        return self._files.trouble

    def close(self) -> None:
        """Close all files; the next write opens them again. Raises RunError if data are lost."""
        self._number = self._journalled = None
        try:
            self._files.close()
        except OSError as error:
            raise cannot(self.path, "write what was left when closing", error) from error

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except RunError:
            if kind is None:  # otherwise the first error is reported
                raise

    # -- reading -------------------------------------------------------------------------------

    @property
    def start(self) -> dict[str, Any]:
        """First event of the journal; {} = the event is missing or damaged."""
        try:
            with open_file(self.path / JOURNAL) as stream:
                found = unseal(stream.readline(_MOST_OF_START).rstrip(b"\n"))
        except OSError:
            return {}
        return found[0] if found is not None and found[0].get("event") == "start" else {}

    def events(self) -> list[dict[str, Any]]:
        """Return all events of the journal; `journal` takes less memory. Raises RunError."""
        return list(self.journal())

    def journal(self) -> Events:
        """Return the events of the journal, with an event ``gap`` for damaged lines.

        Raises:
            RunError: the journal cannot be read, or two processes wrote to it.
        """
        found, self._journalled = self._journalled or read_journal(self.path / JOURNAL), None
        if found.rest:
            self._note_cut(JOURNAL)
        for part in found.damage:
            if part not in self.damage:
                logger.warning("%s is damaged: %s", self.path / JOURNAL, part)
                self.damage.append(part)
        return found.events

    def records(
        self, keep: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ) -> list[dict[str, Any]]:
        """Return the records, each replaced by ``keep(record)``. Raises RunError on failure."""
        return self._lines(RECORDS, keep)

    def truth(self) -> list[dict[str, Any]]:
        """Return the truth of live traffic at the end of each stage. Raises RunError on failure."""
        return self._lines(TRUTH)

    def summary(self) -> dict[str, Any]:
        """Return the summary; {} = no summary. Raises RunError for an unreadable file."""
        path = self.path / SUMMARY
        try:
            data = json.loads(read_whole(path, MOST_OF_SUMMARY))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise cannot(path, "read the summary", error) from error
        if not isinstance(data, dict):
            msg = f"{path}: expected an object, got {type(data).__name__}"
            raise RunError(msg)
        return data

    def _lines(
        self, name: str, keep: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ) -> list[dict[str, Any]]:
        items, cut_short = read_lines(self.path / name, keep)
        if cut_short:
            self._note_cut(name)
        return items

    def _note_cut(self, name: str) -> None:
        logger.warning("%s: the last line is half-written and is not used", self.path / name)
        if name not in self.cut_short:
            self.cut_short.append(name)


def check_single(folder: Path) -> None:
    """Check that a folder is not the parent folder of runs.

    Raises:
        RunError: it is; the message lists the runs with their scenarios and dates.
    """
    runs = sorted(
        ((path.stat().st_mtime, path) for path in folder.glob(f"*/{CONFIG}")), reverse=True
    )
    if not runs or (folder / CONFIG).exists():
        return
    lines = [f"{folder} holds {counted(len(runs), 'run')}, the newest first; name one of them:"]
    for seconds, path in runs[:_MOST_LISTED]:
        with contextlib.suppress(ConfigError):
            config = load_yaml(path)
            policy = config.get("policy")
            name = policy.get("name") if isinstance(policy, Mapping) else policy
            when = datetime.fromtimestamp(seconds, timezone.utc)
            chosen = f" with {name}" if name else ""
            what = one_line(f"{config.get('name') or 'mission'}{chosen}")
            lines.append(f"  {path.parent}  {what}, begun {when:%Y-%m-%d %H:%M} UTC")
    if len(runs) > _MOST_LISTED:
        lines.append(f"  and {len(runs) - _MOST_LISTED} more")
    raise RunError("\n".join(lines))


def _existing(path: Path | str) -> Path:
    if not Path(path).is_dir():
        what = "is a file, not a run directory"
        if not Path(path).exists():
            runs = [config.parent.name for config in Path(path).parent.glob(f"*/{CONFIG}")]
            what = f"does not exist.{suggest(Path(path).name, runs)}"
        msg = f"run directory {path} {what}"
        raise RunError(msg)
    return Path(path)


def _line(item: Mapping[str, Any]) -> bytes:
    return json.dumps(json_ready(dict(item)), allow_nan=False).encode("utf-8") + b"\n"


_COUNTED = (
    ("plan_seconds", "expanded", "deadline_hit"),
    ("regret", "cumulative_regret", "recommended"),
)
"""Groups of keys whose values are numbers; a record has all keys of a group or none."""


def stage_record(
    *,
    stage: int,
    plan: Plan,
    name: str,
    position: Sequence[float],
    value: float | None,
    weights: Sequence[float],
    length_scales: Sequence[Sequence[float]] | None = None,
    kernels: Sequence[str] = (),
    rmspe: float | None = None,
    nlpd: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the record of a stage: a decision and its result.

    Args:
        stage: number of the decision, from 1.
        plan: the decision; its first waypoint is the place of the record.
        name: name of the place.
        position: (x, y) or (x, y, z) of the place [m].
        value: mean reading of the visit; None = no reading.
        weights: (L,) weights of the candidate hyper-parameters after the reading.
        length_scales: (L,) length-scales of each candidate.
        kernels: (L,) kernel of each candidate; () or "" = no names.
        rmspe: score over the places without a reading, see `records.metrics`; None = no truth.
        nlpd: score over the same places.
        more: further keys.

    Raises:
        ValueError: the plan has no waypoint.
    """
    if plan.waypoint is None:
        msg = f"stage {stage}: a plan without a waypoint has no record ({plan.reason})"
        raise ValueError(msg)
    return {
        "stage": stage,
        "location": plan.waypoint,
        "name": name,
        "position": [float(c) for c in position],
        "value": value,
        "weights": [float(w) for w in weights],
        "length_scales": None if length_scales is None else [list(s) for s in length_scales],
        **({"kernels": list(kernels)} if any(kernels) else {}),
        "lower": plan.lower,
        "upper": plan.upper,
        "expanded": plan.expanded,
        "plan_seconds": plan.seconds,
        "deadline_hit": plan.deadline_hit,
        "rmspe": rmspe,
        "nlpd": nlpd,
        "horizon": plan.horizon,
        "path": list(plan.path),
        "metres": plan.cost.metres,
        "seconds": plan.cost.seconds,
        "candidates": [list(c) for c in plan.candidates],
        **({"routes": [list(route) for route in plan.routes]} if plan.routes else {}),
        **more,
    }


def _is_stage_record(item: Mapping[str, Any]) -> bool:
    try:
        for keys in _COUNTED:
            there = [float(0 if item[k] is None else item[k]) for k in keys if k in item]
            if len(there) not in (0, len(keys)):
                return False
    except (TypeError, ValueError):
        return False
    return type(item.get("stage")) is int
