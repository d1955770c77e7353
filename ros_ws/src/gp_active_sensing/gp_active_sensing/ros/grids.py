"""Mean and deviation as occupancy grids, for costmaps; only of maps whose places are squares."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from nav_msgs.msg import OccupancyGrid
from std_msgs.msg import Float64MultiArray

from gp_active_sensing.errors import RunError
from gp_active_sensing.export.lattice import Lattice
from gp_active_sensing.export.occupancy import limits_of, square_lattice
from gp_active_sensing.mission.config import GridTopicsConfig
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.topology import Topology
from gp_active_sensing.types import FloatArray

__all__ = ["GRID_TOPICS", "GridPublisher"]

logger = logging.getLogger(__name__)

GRID_TOPICS: tuple[tuple[str, Any, Any], ...] = (
    ("~/mean_grid", OccupancyGrid, qos.latched()),
    ("~/std_grid", OccupancyGrid, qos.latched()),
    ("~/grid_limits", Float64MultiArray, qos.latched()),
)
"""Silent where the map is no grid of squares."""


class GridPublisher:
    """Publishes the occupancy grids of a belief.

    Args:
        publish: sends a message on a topic.
        config: values of the levels.
    """

    def __init__(self, publish: Callable[[str, Any], None], config: GridTopicsConfig) -> None:
        self._publish = publish
        self._config = config
        self._known: tuple[Topology, Lattice | None] | None = None
        """The map that was looked at last, and its cells; None = it has none."""

    def send(self, topology: Topology, mean: FloatArray, std: FloatArray, now_ns: int) -> None:
        """Publish the grids of mean (n,) and standard deviation (n,), and their limits."""
        lattice = self._lattice(topology)
        if lattice is None:
            return
        config, frame = self._config, topology.frame
        limits = {
            "mean": limits_of(mean, config.mean_low, config.mean_high),
            "std": limits_of(std, 0.0, config.std_high),
        }
        self._publish("~/grid_limits", outputs.limits_message(limits))
        for name, values in (("mean", mean), ("std", std)):
            message = outputs.occupancy_grid(lattice, values, limits[name], frame, now_ns)
            self._publish(f"~/{name}_grid", message)

    def _lattice(self, topology: Topology) -> Lattice | None:
        """Return the cells of a map; a map that has grown is looked at again."""
        if self._known is None or self._known[0] is not topology:
            try:
                self._known = topology, square_lattice(topology)
            except RunError:
                self._known = topology, None
                if topology.heights is not None:
                    logger.info(
                        "map %r has heights and is no flat grid: nothing comes on ~/mean_grid, "
                        "~/std_grid and ~/grid_limits; ~/field has every place with its z",
                        topology.name,
                    )
        return self._known[1]
