"""Live map of a mission: convert the occupancy grids of a topic into places.

The conversion may take a second on a large map, so it runs without the mission's lock. If the
places have changed, the grid is stored in the run directory and the change is journalled. The
mission's map and belief are then replaced between two messages (`changes`).
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from gp_active_sensing.belief import Belief, BeliefConfig, belief_on
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.errors import ActiveSensingError, ConfigError, MapError, PlanningError
from gp_active_sensing.mission import changes
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.records.events import MapChanged
from gp_active_sensing.records.run_map import GridMap, keep_map, kept_map
from gp_active_sensing.topology import MapConfig
from gp_active_sensing.topology.live import LivePlaces
from gp_active_sensing.topology.map_config import OccupancyConfig
from gp_active_sensing.types import Clock
from gp_active_sensing.util.wording import is_reported

logger = logging.getLogger(__name__)


class NoMapYet(ActiveSensingError):
    """Error: no map has come on the topic `map.topic` yet."""


def frame_problem(found: str, expected: str) -> str:
    """Return why a map in frame `found` is not usable; "" = usable. `expected` "" = any frame."""
    if not expected or found == expected:
        return ""
    return (
        f"the map is in frame {found!r}, and the mission in frame {expected!r}: set map.frame to "
        f"{found!r} (poses and waypoints are then in it, too), or have the map published in "
        f"{expected!r}"
    )


class FirstMap(NamedTuple):
    """First map of a mission, with its places."""

    found: GridMap
    places: LivePlaces

    @classmethod
    def of(cls, config: MapConfig, found: GridMap) -> FirstMap:
        """Convert the first map to places.

        Raises:
            MapError: the map is in another frame, has no free cell, or no place on a free cell.
            ConfigError: the spacing, outline or weights do not fit the map.
        """
        assert isinstance(config, OccupancyConfig), config
        if problem := frame_problem(found.frame, config.frame):
            raise MapError(problem)
        return cls(found, LivePlaces.of(config, found.grid, found.frame))


@dataclass(frozen=True)
class MapUpdate:
    """Changed map, with beliefs over its places; the beliefs contain no readings yet."""

    places: LivePlaces
    fresh: Belief
    further: Mapping[str, Belief]


class LiveMap:
    """Live map of a mission: it replaces the mission's map when a newer map has other places.

    Args:
        places: places of the first map.
        drift: drift model that the policy defines; None = the configured drift model.
        run_dir: directory in which maps are stored; None = maps are not stored.
        further: configured beliefs about the further quantities, keyed by name.
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
        self.problem = ""
        """Reason why the newest map is not used; "" = the map is used."""
        self._belief, self._drift, self._run_dir = belief, drift, run_dir
        self._further = further
        self._lock = threading.Lock()

    @property
    def frame(self) -> str:
        """Coordinate frame of the map."""
        return self.places.topology.frame

    def adopt(self, mission: Mission, found: GridMap) -> bool:
        """Use a newer map, unless it is unusable; return whether the places have changed."""
        with self._lock:
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
        """Count an unusable map under `word`, and log the reason `why`."""
        self.refused[word] += 1
        self.problem = why
        count = self.refused[word]
        if is_reported(count):
            logger.error("a new map is not used, the mission keeps its map: %s (%d)", why, count)

    def replay(self, mission: Mission, event: MapChanged) -> None:
        """After a restart, restore the map from a journalled event.

        Raises:
            RunError: the map is not in the run directory, or has another checksum.
            ValueError: the number or the places of the map differ from the event.
        """
        if self._run_dir is None:
            msg = "the maps of the mission were not kept"
            raise ValueError(msg)
        update = self._update(kept_map(self._run_dir, event.number, event.mark))
        if update is None or update.places.number != event.number:
            msg = f"map {event.number} does not follow map {self.places.number}"
            raise ValueError(msg)
        places = update.places
        if (places.topology.n, len(places.closed)) != (event.places, event.closed):
            msg = (
                f"map {event.number} has {places.topology.n} places, {len(places.closed)} of them "
                f"occupied; expected {event.places} and {event.closed}"
            )
            raise ValueError(msg)
        changes.apply_map(mission, places, update.fresh, update.further)
        self.places = places

    def _update(self, found: GridMap) -> MapUpdate | None:
        """Return the new map with fresh beliefs; None = its places are the same."""
        places, drift = self.places.on(found.grid), self._drift
        if places is None:
            return None
        fresh = belief_on(self._belief, places.topology, drift, run_dir=self._run_dir, quiet=True)
        further = {
            name: belief_on(each, places.topology, drift, quiet=True)
            for name, each in self._further.items()
        }
        return MapUpdate(places, fresh, further)


class MapFeed:
    """Buffer for the newest message; at most one message per period leaves the buffer.

    Args:
        period: smallest time between two returned messages [s].
    """

    def __init__(self, period: float, clock: Clock) -> None:
        self.received = 0
        self._period, self._clock = period, clock
        self._newest: bytes | None = None
        self._due = -math.inf
        """Earliest time at which the next message is returned [s]."""
        self._changed = threading.Condition()
        self._open = True

    def put(self, message: bytes) -> None:
        """Replace the buffered message in O(1) time."""
        with self._changed:
            self.received += 1
            self._newest = message
            self._changed.notify_all()

    def wait_for_map(self) -> bytes | None:
        """Wait until a message is due; return the newest message, or None after `close`."""
        with self._changed:
            while self._open:
                left = self._due - self._clock()
                if self._newest is not None and left <= 0.0:
                    message, self._newest = self._newest, None
                    self._due = self._clock() + self._period
                    return message
                self._changed.wait(left if self._newest is not None else 1.0)
            return None

    def close(self) -> None:
        """Close the buffer and end all waits."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
