"""Further quantities of a mission: how their readings reach the loop.

A mission has one main quantity. Its readings cost the budget, and a place counts as observed when
it was read there. Further quantities have beliefs of their own and are planned for together with
it. Their readings cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.link import follow, linked
from gp_active_sensing.errors import ActiveSensingError, ConfigError, ReadingError
from gp_active_sensing.planning.request import QuantityBelief
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, PlacedReading, Reading, Rejection, TellReport


class Receiver(Protocol):
    """Receiver of the readings of one quantity: `SensingLoop`, or `FurtherReceiver`."""

    @property
    def belief(self) -> Belief:
        """The belief about the quantity."""

    @property
    def topology(self) -> Topology:
        """The map."""

    @property
    def clock_ns(self) -> int | None:
        """Time of the driver's clock [ns]; None = it has none."""

    def place(self, reading: Reading) -> PlacedReading:
        """Check a reading and find its place. Raises ReadingError."""

    def check_budget(self, placed: PlacedReading) -> None:
        """Check that the budget has a reading for a place. Raises ReadingError."""

    def costs(self, location: int) -> bool:
        """Return whether the next reading of a place begins a visit."""

    def tell(self, readings: Iterable[Reading | PlacedReading]) -> TellReport:
        """Use readings; each is either used or rejected and counted."""

    def amend(self, before: PlacedReading, reading: PlacedReading) -> TellReport:
        """Replace a reading by another one of the same stay."""

    def reject(self, reading: Reading, error: ReadingError) -> Rejection:
        """Count a reading that cannot be used."""


class FurtherReceiver:
    """Takes the readings of a further quantity in; none of them costs the budget.

    Args:
        loop: the engine.
        belief: returns the belief about the quantity.
    """

    def __init__(self, loop: Receiver, belief: Callable[[], Belief]) -> None:
        self._loop, self._belief = loop, belief
        self.place = loop.place
        self.amend = loop.amend
        self.reject = loop.reject

    @property
    def belief(self) -> Belief:
        """The belief about the quantity."""
        return self._belief()

    @property
    def topology(self) -> Topology:
        """The map."""
        return self._loop.topology

    @property
    def clock_ns(self) -> int | None:
        """Time of the driver's clock [ns]; None = it has none."""
        return self._loop.clock_ns

    def check_budget(self, placed: PlacedReading) -> None:
        """Accept every reading."""

    def costs(self, location: int) -> bool:
        """Return whether the next reading of a place is the first one of this quantity."""
        return not self.belief.observed[location]

    def tell(self, readings: Iterable[Reading | PlacedReading]) -> TellReport:
        """Use readings; the new places of the report are those of this quantity."""
        before = self.belief.observed.copy()
        with suppress(ActiveSensingError):
            # A gate looks at it before a reading, a restart does not: both are to round alike.
            self.belief.weights  # noqa: B018  computed on being asked
        report = self._loop.tell(readings)
        new = (self.belief.observed & ~before).nonzero()[0].tolist()
        return replace(report, new_places=tuple(new))


class Ledger(Receiver, Protocol):
    """Keeper of the budget of readings: `SensingLoop`."""

    def charge(self, location: int) -> None:
        """Take the reading of a new place off the budget."""

    def check_room(self, place: int, observed: BoolArray) -> None:
        """Check that the budget has a reading for a place. Raises ReadingError."""


class LeadReceiver(FurtherReceiver):
    """Receiver of a further quantity of a probe that does not measure the main one.

    The first reading of a place costs the budget, as one of the main quantity does.
    """

    def __init__(self, loop: Ledger, belief: Callable[[], Belief]) -> None:
        super().__init__(loop, belief)
        self._ledger = loop

    def check_budget(self, placed: PlacedReading) -> None:
        """Check that the budget has a reading for a place. Raises ReadingError."""
        self._ledger.check_room(placed.place, self.belief.observed)

    def tell(self, readings: Iterable[Reading | PlacedReading]) -> TellReport:
        """Use readings; those of new places cost the budget."""
        report = super().tell(readings)
        for place in report.new_places:
            self._ledger.charge(place)
        return report


def by_name(
    main: str, belief: Belief, quantities: Sequence[QuantityBelief]
) -> dict[str, QuantityBelief]:
    """Return further quantities by their names, in their order.

    Args:
        main: name of the main quantity.
        belief: about it.
        quantities: the further ones.

    Raises:
        ValueError: one without a name, two of one name, or beliefs over other places.
    """
    found: dict[str, QuantityBelief] = {}
    for each in quantities:
        if not each.name or each.name == main or each.name in found:
            msg = f"quantities: expected names that differ, got {each.name!r} beside {main!r}"
            raise ValueError(msg)
        if each.belief.n != belief.n:
            msg = f"quantities: {each.name} has {each.belief.n} places, the map has {belief.n}"
            raise ValueError(msg)
        found[each.name] = each
    return found


class QuantityLinks:
    """Links of further quantities to the maps of others.

    Args:
        main: name of the main quantity.
        quantities: the further ones, by name, before their first readings.

    Raises:
        ConfigError: a link to a quantity that is not measured, or that is linked itself.
    """

    def __init__(self, main: str, quantities: Mapping[str, QuantityBelief]) -> None:
        self.sources = {
            name: "" if q.link == main else q.link
            for name, q in quantities.items()
            if q.link is not None
        }
        """Name of the quantity that each is linked to; "" = the main one."""
        self.templates = {name: quantities[name].belief for name in self.sources}
        """Beliefs without a link, before their first readings."""
        known = ["", *(name for name in quantities if name not in self.sources)]
        for name, source in self.sources.items():
            if source not in known:
                others = ", ".join(repr(other or main) for other in known)
                msg = (
                    f"{name}: link: expected a quantity that is not linked itself ({others}), got "
                    f"{quantities[name].link!r}"
                )
                raise ConfigError(msg)

    def linked(self, belief: Callable[[str], Belief]) -> dict[str, Belief]:
        """Return linked beliefs without readings, by name, given how to find one by its name."""
        return {name: linked(self.templates[name], belief(of)) for name, of in self.sources.items()}

    def follow(self, belief: Callable[[str], Belief], source: str, *, now: bool = False) -> None:
        """Make the links to the map of a quantity again where that is due; see `link.follow`."""
        for name, of in self.sources.items():
            if of == source:
                follow(belief(name), self.templates[name], belief(of), now=now)
