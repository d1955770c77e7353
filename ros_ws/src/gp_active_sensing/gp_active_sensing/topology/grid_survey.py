"""Inspect a grid made of a map file before driving on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gp_active_sensing.topology.generated import FreeTopology
from gp_active_sensing.topology.graph import GraphTopology

__all__ = ["GridSurvey", "survey_grid"]


@dataclass(frozen=True)
class GridSurvey:
    """Figures of a grid.

    Args:
        name: of the map.
        frame: its metric frame.
        datum: longitude and latitude of the frame's origin [degree], None when unknown.
        places: number of them.
        spacing: between neighbouring places along x and along y [m].
        west, south, east, north: extent of the places [m].
        joined: pairs of places that a move joins.
        parts: parts that no move joins.
        largest: places of the largest part.
        notes: on the file, a sentence each.
    """

    name: str
    frame: str
    datum: tuple[float, float] | None
    places: int
    spacing: tuple[float, float]
    west: float
    south: float
    east: float
    north: float
    joined: int
    parts: int
    largest: int
    notes: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about this map, a sentence each."""
        if self.parts == 1:
            return ()
        warning = (
            f"no move joins its {self.parts} parts, the largest of which has {self.largest} of "
            f"{self.places} places: a probe stays in the part where it begins; a smaller spacing "
            "may join them, and map.largest_component: true keeps the largest only"
        )
        return (warning,)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "units": "metre", "warnings": list(self.warnings)}


def survey_grid(places: FreeTopology | GraphTopology, notes: tuple[str, ...]) -> GridSurvey:
    """Return the figures of a grid.

    Args:
        places: the map.
        notes: on its file.
    """
    (west, south), (east, north) = places.positions.min(axis=0), places.positions.max(axis=0)
    joined, parts, largest = 0, 1, places.n
    if isinstance(places, GraphTopology):
        joined = sum(map(len, places.moves)) // 2
        parts, largest = places.components.weak, len(places.components.largest)
    return GridSurvey(
        places.name,
        places.frame,
        places.datum,
        places=places.n,
        spacing=(_step(places.positions[:, 0]), _step(places.positions[:, 1])),
        west=float(west),
        south=float(south),
        east=float(east),
        north=float(north),
        joined=joined,
        parts=parts,
        largest=largest,
        notes=notes,
    )


def _step(values: np.ndarray) -> float:
    """Return the distance between neighbouring columns or rows [m], 0 where there is one only."""
    apart = np.diff(np.unique(np.round(values, 6)))
    return float(np.round(apart.min(), 6)) if len(apart) else 0.0
