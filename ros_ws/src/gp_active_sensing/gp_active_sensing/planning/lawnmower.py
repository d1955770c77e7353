"""Rows back and forth, evenly spaced: what is drawn by hand where a field is to be mapped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.errors import PlanningError
from gp_active_sensing.planning.routes.base import Ask, Laying, RoutePolicy
from gp_active_sensing.planning.routes.boustrophedon import Ground
from gp_active_sensing.planning.routes.fitting import densest_rows
from gp_active_sensing.topology.base import Topology

__all__ = ["Lawnmower"]


@dataclass(frozen=True)
class Lawnmower(RoutePolicy):
    """Drive evenly spaced rows back and forth, whatever is read.

    The rows are laid at the first decision, for what is left of the budget then, the way home
    included. What is not given is chosen: of all evenly spaced rows that fit, those that leave the
    least mean distance from a place of the map to the nearest one of a row. Where moves bind
    or metres are what is short, every place of a row is read; where any place may be next and the
    budget is in readings, places as far apart along a row as rows are. Rows keep inside the
    outline, and are driven one side after the other where an obstacle interrupts them.

    Places that are set aside, or that the budget does not last for, are left out. When the rows
    are done and something is left, the nearest places follow. Several probes share the rows out.

    The state is the route. Roads have no rows: on them `spread` is for.
    """

    spacing: float | None = param(
        None,
        help="between the middles of neighbouring rows; null = the densest that the budget lasts "
        "for",
        unit="m",
        above=0.0,
    )
    inset: float | None = param(
        None,
        help="least distance of the outermost rows, and of the ends of rows, from the edge; null = "
        "half, a quarter or none of the spacing, whichever is best",
        unit="m",
        low=0.0,
    )
    direction: float | None = param(
        None,
        help="of the rows, anticlockwise from x; null = along x, y or the long axis of the map, "
        "whichever is best",
        unit="degrees",
        low=-360.0,
        high=360.0,
    )

    def check(self, belief: Belief, topology: Topology) -> None:
        """Refuse a map of roads.

        Raises:
            PlanningError: it is one.
        """
        if topology.roads:
            msg = (
                f"policy lawnmower drives rows over open ground, and map {topology.name!r} is a "
                "network of roads. Take tour (the default) or spread"
            )
            raise PlanningError(msg)

    def lay(self, ask: Ask) -> Laying:
        """Lay the densest rows that the budget lasts for."""
        ground = Ground(ask.topology, np.isfinite(ask.reach.ways.seconds))
        found = densest_rows(
            ground,
            ask.at,
            ask.remaining,
            ask.unread,
            spacing=self.spacing,
            inset=self.inset,
            direction=self.direction,
            limit=ask.limit.expansions,
            spent=ask.spent,
        )
        if found is None:
            return Laying(())
        return Laying(found.laid.places, found.expanded, found.stopped)
