"""The run directory: configuration, journal of events, one record a stage, summary.

Every line is complete and flushed before the next is begun, so a run that is killed leaves a
readable directory; a last line cut short by the kill is tolerated, reported and, on resuming,
removed. Anyone who writes has the lock of the directory, see `gp_active_sensing.util.files`.

The events of the journal are built and read in `gp_active_sensing.records.events`, its lines in
`gp_active_sensing.records.journal`.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gp_active_sensing.belief.run_copy import MODEL
from gp_active_sensing.errors import ConfigError, RunError
from gp_active_sensing.records.held import LockedFiles
from gp_active_sensing.records.journal import (
    Events,
    Journalled,
    read_journal,
    repair_journal,
    seal,
    unseal,
)
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
from gp_active_sensing.util.yaml_files import load_yaml

logger = logging.getLogger(__name__)

CONFIG = "config.yaml"
JOURNAL = "journal.jsonl"
RECORDS = "records.jsonl"
SUMMARY = "summary.json"
TRUTH = "truth.jsonl"
PAGE = "report.html"
MAP = "map"
"""The map for other programs: what the names of these files begin with."""
_MOST_OF_START = 1 << 20
"""Bytes of a first event."""
MOST_OF_SUMMARY = 1 << 28
"""Bytes of a summary."""


class RunDirectory:
    """A directory that holds one run; use `create`, `open`, or `begin_again` to write.

    Args:
        path: the directory, which exists.
        config: what ``config.yaml`` holds.
    """

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.config = dict(config)
        self.order = 0
        """Number of the mission among those of its folder, in the order they began; 0 = none."""
        self.cut_short: list[str] = []
        """Files whose last line was found half-written."""
        self.damage: list[str] = []
        """A sentence on each part of the journal that was found damaged."""
        self._files = LockedFiles(path, (CONFIG, MODEL))
        self._number: int | None = None
        """Number of the last event in the journal; None = not known yet."""
        self._journalled: Journalled | None = None
        """The journal, as it was found when it was repaired; until it is asked for."""

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
        """Write the configuration into a directory that holds no run."""
        try:
            there = [entry for entry in self.path.iterdir() if entry.name not in (MODEL, LOCK)]
            # Killed before anything was written.
            unfinished = [e for e in there if e.name[0] == "." and e.suffix == ".part"]
            for entry in unfinished:
                entry.unlink()
        except OSError as error:
            raise cannot(self.path, "make the run directory", error) from error
        if len(there) > len(unfinished):
            msg = (
                f"run directory {self.path} is not empty; name another one with --out, "
                "or go on with the run it holds with --resume"
            )
            raise RunError(msg)
        text = yaml.safe_dump(json_ready(self.config), sort_keys=False, allow_unicode=True)
        write_whole(self.path / CONFIG, text)
        self._number = 0

    @classmethod
    def open(cls, path: Path | str) -> RunDirectory:
        """Open the directory of an earlier run, to read.

        Raises:
            RunError: there is no such directory, or it holds no readable configuration.
        """
        path = _existing(path)
        try:
            return cls(path, load_yaml(path / CONFIG))
        except ConfigError as error:
            if not (path / CONFIG).exists():
                msg = f"{path} is not a run directory: it has no {CONFIG}"
                raise RunError(msg) from None
            raise RunError(str(error)) from error

    @classmethod
    def begin_again(cls, path: Path | str) -> RunDirectory:
        """Open the directory of an earlier run, to write to; nobody else does until it is closed.

        Raises:
            InUse: somebody else does already.
            RunError: there is no such directory, or it holds no readable configuration.
        """
        run = cls(_existing(path), {})
        if not (run.path / CONFIG).exists():  # somebody else's directory gets no file of ours
            return cls.open(path)
        run.lock()
        try:
            run.config = cls.open(path).config
        except BaseException:
            run.close()
            raise
        return run

    def lock(self) -> None:
        """Keep others from writing here until this is closed, or the process is gone.

        Raises:
            InUse: somebody else writes here already.
        """
        self._files.lock()

    # -- writing -------------------------------------------------------------------------------

    def append_event(self, event: Mapping[str, Any]) -> None:
        """Add a line to the journal. Raises RunError when it cannot be written."""
        self.lock()
        if self._number is None:
            self._number = read_journal(self.path / JOURNAL).number
        self._journalled = None
        self._files.append(JOURNAL, seal(json_ready(dict(event)), self._number + 1))
        self._number += 1

    def append_record(self, record: Mapping[str, Any]) -> None:
        """Add the record of a stage. Raises RunError when it cannot be written."""
        self._files.append(RECORDS, _line(record))

    def append_truth(self, item: Mapping[str, Any]) -> None:
        """Add the field as it was at the end of a stage: ``seconds``, ``values``. Raises RunError.

        Only for a truth that nothing else can give again (live traffic).
        """
        self._files.append(TRUTH, _line(item))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write ``summary.json``, whole or not at all. Raises RunError."""
        self.lock()
        self.check()
        text = json.dumps(json_ready(dict(summary)), indent=2, allow_nan=False)
        write_whole(self.path / SUMMARY, text + "\n")

    def write_file(self, name: str, content: str | bytes) -> None:
        """Write another file of this run (`MAP…`), whole or not at all. Raises RunError."""
        self.lock()
        self.check()
        write_whole(self.path / name, content)

    def forget_records(self) -> None:
        """Empty ``records.jsonl`` (and ``truth.jsonl``); a resumed run writes them again."""
        self.lock()
        self._files.close(RECORDS)
        write_whole(self.path / RECORDS, "")
        self._files.close(TRUTH)
        if (self.path / TRUTH).exists():
            write_whole(self.path / TRUTH, "")

    def clear(self) -> None:
        """Remove what a run has left, so that another can be made here. Raises RunError.

        The copy of its model stays: the other may begin with the same.
        """
        maps = [path.name for path in self.path.glob(f"{MAP}[._-]*")]
        self._remove((*maps, SUMMARY, PAGE, TRUTH, RECORDS, JOURNAL, CONFIG))

    def remove(self) -> None:
        """Remove what a run has left, and its directory where nothing else is in it."""
        self.clear()
        self._remove((MODEL, LOCK))
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _remove(self, names: Sequence[str]) -> None:
        """Remove files, under the lock. Raises RunError."""
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
        """Remove what a kill, a power cut or a bad disk left in the journal and in the records.

        Damaged lines are kept in a copy of the file beside it, and an event ``gap`` stands for
        them; see `repair_journal`.

        Args:
            until_damage: keep of the journal only what is before the first damage.

        Raises:
            RunError: they cannot be read or written.
        """
        self.lock()
        self._files.close(RECORDS)
        drop_damage(self.path / RECORDS, _is_stage_record)
        self._files.close(JOURNAL)
        self._journalled = repair_journal(self.path / JOURNAL, until_damage=until_damage)
        self._number = self._journalled.number

    def sync(self) -> None:
        """Flush the journal to disk. Raises RunError."""
        self.check()
        self._files.sync(JOURNAL)

    def hold(self) -> None:
        """Hold what is there, so that `check` can write it again. Raises RunError."""
        self.lock()
        self._files.hold((CONFIG, MODEL, TRUTH, RECORDS, JOURNAL))

    def check(self) -> None:
        """Restore files that were removed, renamed or replaced. Raises RunError."""
        self._files.check()

    @property
    def trouble(self) -> str:
        """Return what happened to the directory during the run; "" = nothing."""
        return self._files.trouble

    def close(self) -> None:
        """Close the files; writing again opens them again.

        Raises:
            RunError: what was still to be written could not be; all files are closed all the same.
        """
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
            if kind is None:  # otherwise the first error is the one to report
                raise

    # -- reading -------------------------------------------------------------------------------

    @property
    def start(self) -> dict[str, Any]:
        """The first event of the journal; {} where there is none, or it is damaged."""
        try:
            with open_file(self.path / JOURNAL) as stream:
                found = unseal(stream.readline(_MOST_OF_START).rstrip(b"\n"))
        except OSError:
            return {}
        return found[0] if found is not None and found[0].get("event") == "start" else {}

    def events(self) -> list[dict[str, Any]]:
        """Read the journal; [] when there is none. See `journal`, which takes less memory."""
        return list(self.journal())

    def journal(self) -> Events:
        """Return the events of the journal, each made when it is asked for.

        An event ``gap`` stands for damaged lines.

        Raises:
            RunError: it cannot be read, or two processes wrote to it.
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
        """Read the records ([] = none), as `keep` makes them. Raises RunError: a damaged line."""
        return self._lines(RECORDS, keep)

    def truth(self) -> list[dict[str, Any]]:
        """Read what `append_truth` kept; [] when there is none. Raises RunError."""
        return self._lines(TRUTH)

    def summary(self) -> dict[str, Any]:
        """Read the summary; {} when the run did not get that far.

        Raises:
            RunError: the file is there and is not a JSON object.
        """
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

    # -- inside --------------------------------------------------------------------------------

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


def _existing(path: Path | str) -> Path:
    if not Path(path).is_dir():
        what = "is a file, not a run directory" if Path(path).exists() else "does not exist"
        msg = f"run directory {path} {what}"
        raise RunError(msg)
    return Path(path)


def _line(item: Mapping[str, Any]) -> bytes:
    return json.dumps(json_ready(dict(item)), allow_nan=False).encode("utf-8") + b"\n"


# -- the record of a stage -------------------------------------------------------------------------

_COUNTED = (
    ("plan_seconds", "expanded", "deadline_hit"),
    ("regret", "cumulative_regret", "recommended"),
)
"""Keys of a record that are counted over all stages: numbers; a record has all of a row or none."""


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
    plan_seconds: float | None = None,
    rmspe: float | None = None,
    nlpd: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the record of one stage: a decision and what came of it.

    Args:
        stage: 1 for the first decision.
        plan: the decision; its first waypoint is the place of the record.
        name: the map's name of the place.
        position: (x, y) of the place, or (x, y, z) on a map with heights [m].
        value: what was read there (mean of the visit), None when it was set aside.
        weights: (L,) the belief over the hyper-parameters after the reading.
        length_scales: (L,) those of each candidate, which may follow the readings.
        kernels: (L,) that of each candidate, where they have different ones; () or "" = no names.
        plan_seconds: planning time, when it is not the plan's own.
        rmspe: root mean squared prediction error over the places not observed yet, against the
            noise-free truth; None when there is no truth or no such place.
        nlpd: negative log predictive density over the same places; all scores compare with the
            truth at ``truth_seconds`` where the field changes.
        more: further keys, as they are.

    Raises:
        ValueError: a plan without a waypoint is not a stage.
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
        "plan_seconds": plan.seconds if plan_seconds is None else plan_seconds,
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
    """Return whether a line of the records can be counted: it has its stage, and whole figures."""
    try:
        for keys in _COUNTED:
            there = [float(0 if item[k] is None else item[k]) for k in keys if k in item]
            if len(there) not in (0, len(keys)):
                return False
    except (TypeError, ValueError):
        return False
    return type(item.get("stage")) is int
