"""Directory of an experiment, with its configuration, records of trials, and failures.

Each line is appended and flushed as a whole, so that a killed process leaves a readable directory.
A half-written last line is reported, and removed when the experiment is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import RunError
from gp_active_sensing.util.files import (
    LOCK,
    append_whole,
    cannot,
    json_ready,
    lock_directory,
    open_to_append,
    read_lines,
    write_whole,
)
from gp_active_sensing.util.yaml_files import load_yaml
from gp_active_sensing_bench.loading import read_experiment
from gp_active_sensing_bench.plan import Experiment, ExperimentConfig

CONFIG = "experiment.yaml"
RECORDS = "records.jsonl"
FAILURES = "failures.jsonl"


@dataclass(frozen=True)
class ExperimentRecords:
    """Contents of an experiment's directory.

    Args:
        experiment: configuration and trials of ``experiment.yaml``.
        records: records of the experiment's trials, in the order of ``experiment.yaml``.
        failures: failures of the trials without a record.
        other: number of records whose trials are not in ``experiment.yaml``.
        missing: number of trials without a record.
        cut_short: message about a half-written last line; "" = the line is complete.
    """

    experiment: Experiment
    records: tuple[dict[str, Any], ...]
    failures: tuple[dict[str, Any], ...]
    other: int
    missing: int
    cut_short: str

    @property
    def config(self) -> ExperimentConfig:
        """Configuration of the experiment, with all defaults."""
        return self.experiment.config

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on missing trials, warnings, and other facts that a reader of the tables needs."""
        notes = [self.cut_short] if self.cut_short else []
        if self.other:
            notes.append(
                f"{self.other} records are of trials that are not in the experiment's file (any "
                "more); they are kept and not counted."
            )
        if self.missing:
            total = len(self.experiment.trials)
            failed = f", {len(self.failures)} of them failed" if self.failures else ""
            notes.append(f"{self.missing} of {total} trials have no record{failed}.")
        warned = [r for r in self.records if r.get("warnings")]
        if warned:
            notes.append(
                f"{len(warned)} of {len(self.records)} missions warned (`warnings` of each "
                f"record), for example {warned[0]['policy']!r}: {warned[0]['warnings'][0]}"
            )
        made_by = {(r["commit"], json.dumps(r["versions"], sort_keys=True)) for r in self.records}
        if len(made_by) > 1:
            notes.append(
                f"The records come from {len(made_by)} versions of the program or its libraries "
                "(`commit` and `versions` of each record say which)."
            )
        return (*notes, *one_field_notes(self.config, self.records))


_DRAWN = ("gp", "sumo")
"""Kinds of fields that depend on the seed."""


def one_field_notes(
    config: ExperimentConfig, records: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a note for each configuration that has the same field for all seeds.

    The standard errors of such a configuration do not include the variation between fields.
    """
    if any(key.partition(".")[0] in ("field", "map") for key in config.seeded):
        return
    for label in dict.fromkeys(record["configuration"] for record in records):
        mine = [record for record in records if record["configuration"] == label]
        fixed = all(record["config"]["field"].get("kind", "gp") not in _DRAWN for record in mine)
        if fixed and len({record["seed"] for record in mine}) > 1:
            yield (
                f"{label}: all seeds have the same field. Standard errors are over starts and "
                "noise on this one field and say nothing of other fields."
            )


def load_records(directory: Path | str) -> ExperimentRecords:
    """Read the directory of an experiment. The experiment may be incomplete.

    Raises:
        RunError: the directory is missing or belongs to no experiment, or a line is damaged.
        ConfigError: ``experiment.yaml`` cannot be used.
    """
    return ExperimentDirectory.open(directory).load()


class ExperimentDirectory:
    """Directory of an experiment for reading and writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[bytes] | None = None

    @classmethod
    def create(cls, path: Path | str, experiment: Experiment) -> ExperimentDirectory:
        """Make a directory with its parents, and write the configuration.

        Raises:
            RunError: the directory is not empty, or cannot be made or written.
        """
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            made = cls(path)
            made.lock()
            occupied = not is_empty(path)
        except OSError as error:
            raise cannot(path, "make the experiment's directory", error) from error
        if occupied:
            made.close()
            msg = (
                f"directory {path} is not empty; name another one with --out, or go on with the "
                "experiment it holds with --resume"
            )
            raise RunError(msg)
        made.write_config(experiment)
        return made

    @classmethod
    def open(cls, path: Path | str) -> ExperimentDirectory:
        """Open the directory of an earlier experiment.

        Raises:
            RunError: the directory does not exist, or belongs to no experiment.
        """
        path = Path(path)
        if not (path / CONFIG).is_file():
            msg = f"{path} is not the directory of an experiment: there is no {path / CONFIG}"
            raise RunError(msg)
        return cls(path)

    # -- writing -------------------------------------------------------------------------------

    def lock(self) -> None:
        """Lock the directory until `close`. Raises InUse or RunError on failure."""
        if self._lock is None:
            self._lock = lock_directory(self.path)

    def close(self) -> None:
        """Unlock the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def write_config(self, experiment: Experiment) -> None:
        """Replace ``experiment.yaml``. Raises RunError on failure."""
        data = json_ready(to_mapping(experiment.config))
        self.write_text(CONFIG, yaml.safe_dump(data, sort_keys=False, allow_unicode=True))

    def append(self, name: str, item: Mapping[str, Any]) -> None:
        """Append a JSON line to a file of the directory. Raises RunError on failure."""
        line = json.dumps(json_ready(dict(item)), allow_nan=False) + "\n"
        try:
            with open_to_append(self.path / name) as stream:
                append_whole(stream, line.encode("utf-8"))
        except OSError as error:
            raise cannot(self.path / name, "write", error) from error

    def write_text(self, name: str, text: str) -> Path:
        """Replace a file of the directory. Raises RunError on failure."""
        return write_whole(self.path / name, text)

    def forget_failures(self) -> None:
        """Remove the failures of earlier runs. Raises RunError if that is impossible."""
        try:
            (self.path / FAILURES).unlink(missing_ok=True)
        except OSError as error:
            raise cannot(self.path / FAILURES, "remove", error) from error

    # -- reading -------------------------------------------------------------------------------

    def load(self) -> ExperimentRecords:
        """Read all files. Raises RunError or ConfigError on failure."""
        path = self.path / CONFIG
        experiment = read_experiment(load_yaml(path), source=str(path), check_worlds=False)
        items, damaged = read_lines(self.path / RECORDS)
        failures, _ = read_lines(self.path / FAILURES)
        cut_short = f"{self.path / RECORDS}: the last line is half-written and is not used."
        by_key: dict[str, dict[str, Any]] = {}
        for item in items:
            by_key.setdefault(str(item.get("key")), item)
        records: list[dict[str, Any]] = []
        for trial in experiment.trials:
            if trial.key in by_key:
                records.append({**by_key.pop(trial.key), **trial.labels()})
        missing = len(experiment.trials) - len(records)
        done = {record["key"] for record in records}
        return ExperimentRecords(
            experiment,
            tuple(records),
            tuple(f for f in failures if f.get("key") not in done),
            len(by_key),
            missing,
            cut_short if damaged else "",
        )


def is_empty(path: Path) -> bool:
    """Return whether a directory is empty except for temporary files of a killed process."""
    return all(entry.name == LOCK or entry.suffix == ".part" for entry in path.iterdir())
