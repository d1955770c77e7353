"""Compare the events of a repeated mission with the journal of an earlier run."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from gp_active_sensing.errors import RunError
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.records.run_map import NO_LONGER, other_places
from gp_active_sensing.util.files import json_ready

logger = logging.getLogger(__name__)

_FREE = ("versions", "map", "places")
"""Keys of the event ``start`` that may differ; places may differ by rounding errors only."""


class EarlierRun:
    """Journal of an earlier run; a repetition of the run must produce the same events.

    Args:
        run: locked directory of the run.
        events: events of the run's journal; () = a new run.

    Raises:
        RunError: ROS nodes wrote the journal.
    """

    def __init__(self, run: RunDirectory, events: Sequence[Mapping[str, Any]]) -> None:
        self.run = run
        self._left = deque(events)
        self.count = len(self._left)
        """Number of events in the journal; 0 = a new run."""
        if self._left and self._left[0].get("driver") != "sim":
            msg = (
                f"{run.path} holds a mission of the nodes, which only they can go on with: start "
                "them with this run_dir, or name another directory"
            )
            raise RunError(msg)

    @property
    def next(self) -> tuple[Mapping[str, Any], ...]:
        """Next two expected events; fewer at the end of the journal."""
        return tuple(islice(self._left, 2))

    def has(self, event: Mapping[str, Any]) -> bool:
        """Compare an event with the next event of the journal; return False if none is left.

        Raises:
            RunError: the next event of the journal differs from `event`.
        """
        if not self._left:
            return False
        expected = self._left.popleft()
        found = json.loads(json.dumps(json_ready(event)))
        if _compared(found) != _compared(expected):
            raise self._out_of_order(expected, found)
        if found["event"] == "start":
            self._check_start(expected, found)
        return True

    def check_end(self) -> None:
        """Raise RunError if the journal of a finished mission has more events."""
        if self._left:
            raise self._out_of_order(self._left.popleft(), None)

    def _check_start(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        if why := other_places(expected.get("places"), found.get("places", {})):
            msg = f"{self.run.path}: {NO_LONGER.format(why)}"
            raise RunError(msg)
        now, then = dict(found.get("versions", {})), dict(expected.get("versions", {}))
        changed = ", ".join(
            f"{name} {then.get(name, 'none')} -> {now.get(name, 'none')}"
            for name in sorted({*now, *then})
            if now.get(name) != then.get(name)
        )
        if changed:
            text = "the run was started with other versions, so digits may differ: %s"
            logger.warning(text, changed)

    def _out_of_order(
        self, event: Mapping[str, Any], instead: Mapping[str, Any] | None
    ) -> RunError:
        number = self.count - len(self._left)
        wanted = "nothing after the end" if instead is None else str(dict(instead))[:500]
        return RunError(
            f"{self.run.path}: event {number} of the journal does not follow from the ones before "
            f"it: expected {wanted}, got {str(dict(event))[:500]}. The journal is damaged, or "
            "was written by another version: start the run again in another directory"
        )


_REMOVED = ("foreseen", "foreseen_for")
"""Keys of decisions in journals of earlier versions; they are ignored if their value is empty."""


def _compared(event: Mapping[str, Any]) -> dict[str, Any]:
    free = _FREE if event.get("event") == "start" else ()
    gone = [key for key in _REMOVED if not event.get(key)]
    return {key: value for key, value in event.items() if key not in (*free, *gone)}
