"""How much of the readings' variance other places explain, kept up to date at a bounded cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.leave_one_out import FEWEST

__all__ = ["Explained"]

GROWTH = 0.1
"""Share by which the number of places has to grow until it is computed again, and …"""
AT_LEAST = 5
"""… places that have to be added."""
MANY = 600
"""Places from which on it is computed more seldom: no place costs more than one of the first so
many."""


@dataclass(frozen=True)
class Explained:
    """Share of the variance of the places' average readings that the other places explain.

    As it was when it was last computed, which costs O(L D³) for D places. It is computed again once
    they have grown by a tenth, and by five at least, so a place costs O(10 L D²); beyond `MANY`
    places the growth that is waited for is larger, by as much as keeps that cost of a place.

    Args:
        share: see `LeaveOneOut.explained`; None = not known.
        places: number D of places that it was computed of; 0 = it was not computed yet.
    """

    share: float | None = None
    places: int = 0

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Explained:
        """Return what the record of a stage says; nothing where it is of an earlier version."""
        share, places = record.get("explained"), record.get("explained_places")
        if not isinstance(places, int):
            return cls()
        return cls(None if share is None else float(share), places)

    def to_record(self) -> dict[str, Any]:
        """Return the keys of the record of a stage."""
        return {"explained": self.share, "explained_places": self.places}

    @property
    def due(self) -> int:
        """Number of places with which it is to be computed again."""
        if not self.places:
            return FEWEST
        growth = GROWTH * max(1.0, (self.places / MANY) ** 2)
        return self.places + max(AT_LEAST, round(growth * self.places))

    def after(self, belief: Belief) -> Explained:
        """Return it for a belief, computed again only where that is due."""
        places = int(belief.observed.sum())
        if places < self.due:
            return self
        found = belief.leave_one_out()
        return Explained(None if found is None else found.explained, places)
