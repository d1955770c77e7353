"""The map of a run, at its end or after one of its stages."""

from __future__ import annotations

import logging
from pathlib import Path

from gp_active_sensing.errors import RunError
from gp_active_sensing.export import FieldMap
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.records.events import (
    DecisionTaken,
    ExpertAnswered,
    ReadingUsed,
    ReturnBegun,
)
from gp_active_sensing.report.source import RunData, load_run
from gp_active_sensing.report.steps import JournalTeller

__all__ = ["map_of", "map_of_run"]

logger = logging.getLogger(__name__)


def map_of_run(run_dir: Path, stage: int | None = None) -> FieldMap:
    """Return the map that a run directory holds; the run may be under way.

    Args:
        run_dir: of a simulation, a mission or a replay.
        stage: the map after this stage; None = after the last reading.

    Raises:
        RunError: not a run directory, no such stage, or no reading up to then.
        ActiveSensingError: a map that cannot be found or read any more.
    """
    return map_of(load_run(run_dir), stage)


def map_of(data: RunData, stage: int | None = None) -> FieldMap:
    """Return the map of a run that was read; see `map_of_run`."""
    events = tuple(parse_events(data.events))
    if stage is not None:
        numbers = [event.stage for event in events if isinstance(event, DecisionTaken)]
        _check(data.path, stage, max(numbers, default=0))
    belief = data.fresh_belief()
    teller = JournalTeller(belief, data.topology)
    told = used = number = 0
    for event in events:
        if isinstance(event, DecisionTaken | ReturnBegun):
            number = event.stage if isinstance(event, DecisionTaken) else number + 1
            if stage is not None and number > stage:
                break
        elif isinstance(event, ReadingUsed | ExpertAnswered):
            expert = isinstance(event, ExpertAnswered)
            reading = (
                event if isinstance(event, ReadingUsed) else ReadingUsed(reading=event.reading)
            )
            told += 1
            used += len(list(teller.tell([reading], expert=expert)))
    if told > used:
        logger.warning(
            "%s: %d of %d readings could not be used (not finite, out of range, or off the map)",
            data.path,
            told - used,
            told,
        )
    title = str(data.config.get("name") or data.path.resolve().name)
    if stage is not None:
        title += f", stage {stage}"
    if not belief.observed.any():
        until = "" if stage is None else f" up to stage {stage}"
        msg = (
            f"{data.path}: no place has a reading{until}; there is no map yet, only what was "
            "believed before"
        )
        raise RunError(msg)
    return FieldMap.of(data.topology, belief, unit=data.unit, quantity=data.quantity, title=title)


def _check(path: Path, stage: int, last: int) -> None:
    if not last:
        msg = f"{path}: nothing was decided in this run, so it has no stages; leave --stage out"
        raise RunError(msg)
    if not 1 <= stage <= last:
        msg = f"{path}: has stages 1 … {last}, got {stage}"
        raise RunError(msg)
