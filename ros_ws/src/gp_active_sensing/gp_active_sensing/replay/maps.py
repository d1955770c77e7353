"""The maps in a bag, of a mission whose map comes by a topic (nav_msgs/OccupancyGrid)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator

from gp_active_sensing.errors import ConfigError, MapError, ReplayError
from gp_active_sensing.messages.occupancy import MAP_TYPE, read_map
from gp_active_sensing.mission.live_map import FirstMap
from gp_active_sensing.replay.bag import Bag, BagMessage
from gp_active_sensing.topology import MapConfig
from gp_active_sensing.topology.kept_maps import GridMap
from gp_active_sensing.topology.live import mark_of

__all__ = ["BagMaps"]

logger = logging.getLogger(__name__)


class BagMaps:
    """Reads the maps of a bag; what cannot be read is counted.

    Args:
        bag: which is open.
        config: of the map.
        topic: of the maps in the bag; "" = that of `config`, with or without a / in front.

    Raises:
        ReplayError: the bag does not have the topic, or has something else on it.
    """

    def __init__(self, bag: Bag, config: MapConfig, topic: str = "") -> None:
        self._bag, self._config = bag, config
        self.unreadable: Counter[str] = Counter()
        held = {t.name: t.type for t in bag.topics}
        wanted = (topic,) if topic else (config.topic, f"/{config.topic.lstrip('/')}")
        self.topic = next((name for name in wanted if name in held), "")
        if not self.topic:
            grids = ", ".join(name for name, kind in held.items() if kind == MAP_TYPE) or "none"
            msg = (
                f"bag {bag.path}: has no topic {wanted[-1]}, from which the map comes (map.topic); "
                f"topics of {MAP_TYPE} in it: {grids}. Record it, too, or give the map as a file: "
                "--map"
            )
            raise ReplayError(msg)
        if held[self.topic] != MAP_TYPE:
            msg = (
                f"bag {bag.path}: topic {self.topic} is {held[self.topic]}, expected {MAP_TYPE}; "
                "set map.topic"
            )
            raise ReplayError(msg)

    def read(self, message: BagMessage) -> GridMap | None:
        """Return the map of a message; None where it cannot be read (counted, and said)."""
        try:
            return read_map(self._bag.decode(message))
        except (MapError, ReplayError, AttributeError, TypeError, ValueError) as error:
            self.unreadable[self.topic] += 1
            logger.warning("a map of topic %s is left out: %s", self.topic, error)
            return None

    def first(self) -> FirstMap:
        """Return the first map that a mission can begin with.

        Raises:
            ReplayError: there is none; the message says why the last one cannot be used.
        """
        why = "there is no message"
        for found in self._all():
            try:
                return FirstMap.of(self._config, found)
            except (MapError, ConfigError) as error:
                why = str(error)
        msg = f"bag {self._bag.path}: no map of topic {self.topic} can be used: {why}"
        raise ReplayError(msg)

    def marked(self, marks: Collection[str]) -> dict[str, GridMap]:
        """Return the maps with these marks.

        Raises:
            ReplayError: one of them is not in the bag.
        """
        found = {mark_of(m.grid): m for m in self._all()}
        if missing := sorted(set(marks) - set(found)):
            msg = (
                f"bag {self._bag.path}: {len(missing)} of the {len(set(marks))} maps that the "
                f"mission used are not in topic {self.topic}; it cannot be done again. Begin to "
                "record before the node starts"
            )
            raise ReplayError(msg)
        return {mark: found[mark] for mark in marks}

    def _all(self) -> Iterator[GridMap]:
        for message in self._bag.messages([self.topic]):
            if (found := self.read(message)) is not None:
                yield found
