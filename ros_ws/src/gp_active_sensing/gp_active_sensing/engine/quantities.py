"""Further quantities of a mission, and their links to the maps of others.

A mission has one main quantity. Its readings cost the budget, and a place counts as observed when
it was read there. Further quantities have beliefs of their own and are planned for together with
it. Their readings cost nothing, unless the probe does not measure the main one.
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
    """Return further quantities by their names, in their order.

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


def may_follow(name: str, main: Belief, quantities: Mapping[str, QuantityBelief]) -> bool:
    """Return whether a quantity whose link is `AUTO` may be linked to the main one.

    It may unless one of both changes in time, or another quantity is to be linked to it.
    """
    changing = main.drift.changing or quantities[name].belief.drift.changing
    return not changing and all(q.link != name for q in quantities.values())


class QuantityLinks:
    """Links of further quantities, before their first readings, to the maps of others.

    Raises:
        ConfigError: a link to a quantity that is not measured, that is linked itself, or that
            changes in time.
    """

    def __init__(self, main: str, belief: Belief, quantities: Mapping[str, QuantityBelief]) -> None:
        self.sources = {
            name: "" if q.link in (main, AUTO) else q.link
            for name, q in quantities.items()
            if q.link is not None and (q.link != AUTO or may_follow(name, belief, quantities))
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
            check_linked(self.templates[name], quantities[source].belief if source else belief)

    def follow(self, belief: Callable[[str], Belief], source: str, *, now: bool = False) -> None:
        """Renew the links to the map of a quantity where that is due; see `link.follow`."""
        for name, of in self.sources.items():
            if of == source:
                follow(belief(name), self.templates[name], belief(of), now=now)
