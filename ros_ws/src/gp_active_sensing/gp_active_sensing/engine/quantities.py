"""Further quantities of a mission, and their links to the maps of other quantities.

A mission has one main quantity. Readings of the main quantity count against the budget, and they
determine which places count as observed. Each further quantity has its own belief. Policies plan
for all quantities together. A probe with a sensor for the main quantity reads the further
quantities without a charge to the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.link import AUTO, check_linked, follow
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning.request import QuantityBelief


def by_name(
    main: str, belief: Belief, quantities: Sequence[QuantityBelief]
) -> dict[str, QuantityBelief]:
    """Return the further quantities in the given order, keyed by name.

    Raises:
        ValueError: a name is missing or repeated, or the beliefs differ in the number of places.
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


def may_follow(name: str, main: Belief, quantities: Mapping[str, QuantityBelief]) -> bool:
    """Return whether a quantity with the link `AUTO` may be linked to the main quantity.

    Both quantities must be constant in time, and no other quantity may be linked to `name`.
    """
    changing = main.drift.changing or quantities[name].belief.drift.changing
    return not changing and all(q.link != name for q in quantities.values())


class QuantityLinks:
    """Links of further quantities to the maps of other quantities.

    Raises:
        ConfigError: the target of a link is not measured, has a link itself, or changes in time.
    """

    def __init__(self, main: str, belief: Belief, quantities: Mapping[str, QuantityBelief]) -> None:
        self.sources = {
            name: "" if q.link in (main, AUTO) else q.link
            for name, q in quantities.items()
            if q.link is not None and (q.link != AUTO or may_follow(name, belief, quantities))
        }
        """For each linked quantity, the quantity to which it is linked; "" = the main quantity."""
        self.templates = {name: quantities[name].belief for name in self.sources}
        """For each linked quantity, the belief about it before any reading."""
        known = ["", *(name for name in quantities if name not in self.sources)]
        for name, source in self.sources.items():
            if source not in known:
                others = ", ".join(repr(other or main) for other in known)
                msg = (
                    f"{name}: link: expected a quantity that is not linked itself ({others}), got "
                    f"{quantities[name].link!r}"
                )
                raise ConfigError(msg)
            check_linked(self.templates[name], quantities[source].belief if source else belief)

    def follow(self, belief: Callable[[str], Belief], source: str, *, now: bool = False) -> None:
        """Update the links to the map of the quantity `source`; see `belief.link.follow`."""
        for name, of in self.sources.items():
            if of == source:
                follow(belief(name), self.templates[name], belief(of), now=now)
