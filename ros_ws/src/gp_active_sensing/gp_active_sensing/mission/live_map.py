"""The map of a mission that changes while it goes on: occupancy grids in, places out.

A grid that comes is turned into places without the mission's lock: that may take a second on a
large map. Where the places have changed the grid is kept in the run directory, the change is an
event of the journal, and then map and belief are swapped between two messages (`changes`).
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.errors import ActiveSensingError, ConfigError, MapError, PlanningError
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.records.events import MapChanged
from gp_active_sensing.topology import MapConfig
from gp_active_sensing.topology.live import GridMap, LivePlaces, keep_map, kept_map
from gp_active_sensing.topology.map_config import OccupancyConfig
from gp_active_sensing.types import Clock
from gp_active_sensing.util.wording import is_reported

logger = logging.getLogger(__name__)


class NoMapYet(ActiveSensingError):
    """The map comes by a topic, and none has come."""


def frame_problem(found: str, expected: str) -> str:
    """Return why a map in a frame cannot be used, "" when it can; expected "" = any frame."""
    if not expected or found == expected:
        return ""
    return (
        f"the map is in frame {found!r}, and the mission in frame {expected!r}: set map.frame to "
        f"{found!r} (poses and waypoints are then in it, too), or have the map published in "
        f"{expected!r}"
    )


class FirstMap(NamedTuple):
    """The map that a mission begins with, and its places."""

    found: GridMap
    places: LivePlaces

    @classmethod
    def of(cls, config: MapConfig, found: GridMap) -> FirstMap:
        """Make the places of a map.

        Raises:
            MapError: it is in another frame, has no free cell, or no place on one.
            ConfigError: a spacing, an outline or weights that do not fit it.
        """
        assert isinstance(config, OccupancyConfig), config
        if problem := frame_problem(found.frame, config.frame):
            raise MapError(problem)
        return cls(found, LivePlaces.of(config, found.grid, found.frame))


@dataclass(frozen=True)
class MapUpdate:
    """Changed map, with the beliefs over its places before the first reading."""

    found: GridMap
    places: LivePlaces
    fresh: Belief
    further: Mapping[str, Belief]


class LiveMap:
    """Keeps the map of a mission up to date; one thread calls `take`.

    Args:
        belief: what was known beforehand.
        drift: what the policy brings of its own; None = that of `belief`.
        run_dir: where maps are kept; None = nowhere.
        further: what was known beforehand of the further quantities, by name.
    """

    def __init__(
        self,
        places: LivePlaces,
        belief: BeliefConfig,
        drift: DriftConfig | None,
        run_dir: Path | None,
        further: Mapping[str, BeliefConfig] = MappingProxyType({}),
    ) -> None:
        self.places = places
        self.refused: Counter[str] = Counter()
        """Maps that could not be used, by the word of the reason."""
        self.problem = ""
        """Why the newest map is not used; "" = it is."""
        self.received = 0
        self._belief, self._drift, self._run_dir = belief, drift, run_dir
        self._further = further
        self._lock = threading.Lock()

    @property
    def frame(self) -> str:
        """That of the map."""
        return self.places.topology.frame

    def take(self, mission: Mission, found: GridMap) -> bool:
        """Use the places of a newer map; return whether they have changed.

        A map that cannot be used is counted and said, and the mission keeps the one it has.
        """
        with self._lock:
            self.received += 1
            if problem := frame_problem(found.frame, self.frame):
                self.refuse("frame", problem)
                return False
            try:
                update = self._update(found)
            except (MapError, ConfigError, PlanningError, ValueError) as error:
                self.refuse("no_places" if isinstance(error, MapError) else "unusable", str(error))
                return False
            self.problem = ""
            if update is None or mission.state == "ended":
                return False
            if self._run_dir is not None:
                keep_map(self._run_dir, update.places.number, found)
            changes.change_map(mission, update.places, update.fresh, update.further)
            self.places = update.places
            return True

    def refuse(self, word: str, why: str) -> None:
        """Count and log a map that cannot be used."""
        self.refused[word] += 1
        self.problem = why
        count = self.refused[word]
        if is_reported(count):
            logger.error("a new map is not used, the mission keeps its map: %s (%d)", why, count)

    def replay(self, mission: Mission, event: MapChanged) -> None:
        """Restore a map from before a restart.

        Raises:
            RunError: it is not in the run directory, or another one.
            ValueError: it does not give the places that the journal says.
        """
        if self._run_dir is None:
            msg = "the maps of the mission were not kept"
            raise ValueError(msg)
        update = self._update(kept_map(self._run_dir, event.number, event.mark))
        places = None if update is None else update.places
        if update is None or places is None or places.number != event.number:
            msg = f"map {event.number} does not follow map {self.places.number}"
            raise ValueError(msg)
        if (places.topology.n, len(places.closed)) != (event.places, event.closed):
            msg = (
                f"map {event.number} has {places.topology.n} places, {len(places.closed)} of them "
                f"occupied; expected {event.places} and {event.closed}"
            )
            raise ValueError(msg)
        changes.take_map(mission, places, update.fresh, update.further)
        self.places = places

    def _update(self, found: GridMap) -> MapUpdate | None:
        """Return the change that a map makes; None where the places are the same."""
        places = self.places.on(found.grid)
        if places is None:
            return None
        fresh = belief_on(
            self._belief, places.topology, self._drift, run_dir=self._run_dir, quiet=True
        )
        further = {
            name: belief_on(each, places.topology, self._drift, quiet=True)
            for name, each in self._further.items()
        }
        return MapUpdate(found, places, fresh, further)


T = TypeVar("T")


class MapFeed(Generic[T]):
    """Keeps the newest message, and hands it on no more often than once in a while.

    A map is made again in tenths of a second and its publisher may send ten a second: those in
    between are never looked at.

    Args:
        period: least time between two messages that are handed on [s].
    """

    def __init__(self, period: float, clock: Clock) -> None:
        self.received = 0
        self._period, self._clock = period, clock
        self._newest: T | None = None
        self._taken_at: float | None = None
        self._changed = threading.Condition()
        self._open = True

    def put(self, message: T) -> None:
        """Leave a message; O(1)."""
        with self._changed:
            self.received += 1
            self._newest = message
            self._changed.notify_all()

    def take(self, wait: Callable[[threading.Condition, float], object] | None = None) -> T | None:
        """Return the newest message once it is due; None after `close`.

        `wait` waits so many seconds, or until something comes; None = as a condition does.
        """
        waits = wait or (lambda changed, seconds: changed.wait(seconds))
        with self._changed:
            while self._open:
                left = self._left()
                if self._newest is not None and left <= 0.0:
                    message, self._newest = self._newest, None
                    self._taken_at = self._clock()
                    return message
                waits(self._changed, left if self._newest is not None else 1.0)
            return None

    def _left(self) -> float:
        if self._taken_at is None:
            return 0.0
        return self._taken_at + self._period - self._clock()

    def close(self) -> None:
        """Stop; callers that wait return."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
