"""The run directory: configuration, journal of events, one record a stage, summary.

Every line is complete and flushed before the next is begun, so a run that is killed leaves a
readable directory; a last line cut short by the kill is tolerated, reported and, on resuming,
removed.

The events of the journal are built and read in `gp_active_sensing.events`.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import yaml

from gp_active_sensing.errors import RunError
from gp_active_sensing.files import (
    append_whole,
    cannot,
    drop_cut_line,
    open_to_append,
    read_lines,
    sync_folder,
    write_whole,
)

__all__ = ["RunDirectory", "json_ready"]

logger = logging.getLogger(__name__)

CONFIG = "config.yaml"
JOURNAL = "journal.jsonl"
RECORDS = "records.jsonl"
SUMMARY = "summary.json"
TRUTH = "truth.jsonl"
PAGE = "report.html"
MODEL = "model.npz"
"""The run's own copy of the belief over kernels that it began with."""


class RunDirectory:
    """A directory that holds one run; use `create` or `open`.

    Args:
        path: the directory, which exists.
        config: what ``config.yaml`` holds.
    """

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.config = dict(config)
        self.cut_short: list[str] = []
        """Files whose last line was found half-written."""
        self._streams: dict[str, IO[bytes]] = {}

    @classmethod
    def create(cls, path: Path | str, config: Mapping[str, Any]) -> RunDirectory:
        """Make a new run directory (and its parents) and write the configuration.

        Raises:
            RunError: the directory is not empty, or cannot be made or written.
        """
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            occupied = any(entry.name != MODEL for entry in path.iterdir())
        except OSError as error:
            raise cannot(path, "make the run directory", error) from error
        if occupied:
            msg = (
                f"run directory {path} is not empty; name another one with --out, "
                "or go on with the run it holds with --resume"
            )
            raise RunError(msg)
        run = cls(path, config)
        text = yaml.safe_dump(json_ready(dict(config)), sort_keys=False, allow_unicode=True)
        write_whole(run.path / CONFIG, text)
        return run

    @classmethod
    def open(cls, path: Path | str) -> RunDirectory:
        """Open the directory of an earlier run.

        Raises:
            RunError: there is no such directory, or it holds no readable configuration.
        """
        path = Path(path)
        if not path.is_dir():
            msg = f"run directory {path} does not exist"
            raise RunError(msg)
        try:
            config = yaml.safe_load((path / CONFIG).read_text(encoding="utf-8"))
        except FileNotFoundError:
            msg = f"{path} is not a run directory: it has no {CONFIG}"
            raise RunError(msg) from None
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise cannot(path, f"read {CONFIG}", error) from error
        if not isinstance(config, dict):
            msg = f"{path / CONFIG}: expected a mapping, got {type(config).__name__}"
            raise RunError(msg)
        return cls(path, config)

    def lock(self) -> bool:
        """Keep other processes from writing here until this one closes it, or is gone.

        Returns:
            False when another process has it.
        """
        try:
            import fcntl
        except ImportError:  # not on this system
            return True
        try:
            stream = (self.path / CONFIG).open("rb")
        except OSError as error:
            raise cannot(self.path / CONFIG, "open", error) from error
        try:
            fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.close()
            return False
        self._streams[CONFIG] = stream
        return True

    # -- writing -------------------------------------------------------------------------------

    def append_event(self, event: Mapping[str, Any]) -> None:
        """Add a line to the journal. Raises RunError when it cannot be written."""
        self._append(JOURNAL, event)

    def append_record(self, record: Mapping[str, Any]) -> None:
        """Add the record of a stage. Raises RunError when it cannot be written."""
        self._append(RECORDS, record)

    def append_truth(self, item: Mapping[str, Any]) -> None:
        """Add the field as it was at the end of a stage: ``seconds``, ``values``. Raises RunError.

        Only for a truth that nothing else can give again (live traffic).
        """
        self._append(TRUTH, item)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write ``summary.json``, whole or not at all. Raises RunError."""
        text = json.dumps(json_ready(dict(summary)), indent=2, allow_nan=False)
        write_whole(self.path / SUMMARY, text + "\n")

    def forget_records(self) -> None:
        """Empty ``records.jsonl`` (and ``truth.jsonl``); a resumed run writes them again."""
        self._close(RECORDS)
        write_whole(self.path / RECORDS, "")
        self._close(TRUTH)
        if (self.path / TRUTH).exists():
            write_whole(self.path / TRUTH, "")

    def clear(self) -> None:
        """Remove what a run has left, so that another can be made here. Raises RunError.

        The copy of its model stays: the other may begin with the same.
        """
        self.close()
        for name in (SUMMARY, PAGE, TRUTH, RECORDS, JOURNAL, CONFIG):
            try:
                (self.path / name).unlink(missing_ok=True)
            except OSError as error:
                raise cannot(self.path / name, "remove", error) from error

    def drop_cut_line(self) -> bool:
        """Remove what a kill or a power cut left at the end of the journal and of the records.

        Returns:
            Whether the journal had such an end.

        Raises:
            RunError: they cannot be read or written.
        """
        self._close(RECORDS)
        drop_cut_line(self.path / RECORDS)
        self._close(JOURNAL)
        return drop_cut_line(self.path / JOURNAL)

    def sync(self) -> None:
        """Have the journal on disk as far as it is written. Raises RunError."""
        stream = self._streams.get(JOURNAL)
        try:
            if stream is not None and not stream.closed:
                os.fsync(stream.fileno())
        except ValueError:
            pass  # closed meanwhile, which has flushed it
        except OSError as error:
            raise cannot(self.path / JOURNAL, "put on disk", error) from error

    def close(self) -> None:
        """Close the files; writing again opens them again.

        Raises:
            RunError: what was still to be written could not be; all files are closed all the same.
        """
        failed: OSError | None = None
        for name in list(self._streams):
            try:
                self._close(name)
            except OSError as error:
                failed = error
        if failed is not None:
            raise cannot(self.path, "write what was left when closing", failed) from failed

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except RunError:
            if kind is None:  # otherwise the first error is the one to report
                raise

    # -- reading -------------------------------------------------------------------------------

    def events(self) -> list[dict[str, Any]]:
        """Read the journal; [] when there is none. Raises RunError for a damaged line."""
        return self._lines(JOURNAL)

    def records(self) -> list[dict[str, Any]]:
        """Read the records; [] when there is none. Raises RunError for a damaged line."""
        return self._lines(RECORDS)

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
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise cannot(path, "read the summary", error) from error
        if not isinstance(data, dict):
            msg = f"{path}: expected an object, got {type(data).__name__}"
            raise RunError(msg)
        return data

    # -- inside --------------------------------------------------------------------------------

    def _append(self, name: str, item: Mapping[str, Any]) -> None:
        line = json.dumps(json_ready(dict(item)), allow_nan=False) + "\n"
        try:
            stream = self._streams.get(name)
            if stream is None:
                stream = open_to_append(self.path / name)
                self._streams[name] = stream
                sync_folder(self.path)
            append_whole(stream, line.encode("utf-8"))
        except OSError as error:
            raise cannot(self.path / name, "write", error) from error

    def _close(self, name: str) -> None:
        stream = self._streams.pop(name, None)
        if stream is not None:
            stream.close()

    def _lines(self, name: str) -> list[dict[str, Any]]:
        items, cut_short = read_lines(self.path / name)
        if cut_short:
            logger.warning("%s: the last line is half-written and is not used", self.path / name)
            if name not in self.cut_short:
                self.cut_short.append(name)
        return items


def json_ready(value: Any) -> Any:
    """Return plain data; numbers that JSON cannot say become text ("nan", "inf")."""
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
