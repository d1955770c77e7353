"""Change a running mission: its budget, distances, clock, map and probes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from gp_active_sensing.belief import Belief
from gp_active_sensing.mission.config import CLOCK_TOLERANCE, MissionConfig
from gp_active_sensing.mission.fleet import OFF_LIST
from gp_active_sensing.mission.log_messages import budget_text
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.records.events import BudgetChanged, ClockStepped, MapChanged
from gp_active_sensing.topology.live import LivePlaces, is_cut
from gp_active_sensing.types import MEAN, Aim, Budget

logger = logging.getLogger(__name__)


def set_budget(
    mission: Mission,
    budget: Budget,
    aim: Aim | None = None,
    aims: Mapping[str, Aim] = MappingProxyType({}),
) -> None:
    """Change the total budget: readings for all probes, metres and seconds for each probe.

    Readings and drives so far are subtracted. If too few readings remain for the present drives,
    the newest of these drives are abandoned.
    """
    with mission.lock:
        if mission.state == "ended":
            logger.warning("the mission is over: the new budget has no effect")
            return
        before = budget_text(mission.budget, mission.loop.aim)
        logger.info(
            "the budget is now %s (was %s); readings spent or under way: %d, driven: %.0f m",
            *(budget_text(budget, aim), before, mission.loop.spent, mission.driven.metres),
        )
        mission.journal(
            BudgetChanged(
                readings=budget.readings,
                metres=budget.metres,
                seconds=budget.seconds,
                error=None if aim is None else aim.error,
                error_of=next((each.of for each in (aim, *aims.values()) if each), MEAN),
                errors={name: each.error for name, each in aims.items()},
                stamp_ns=mission.now_ns,
            )
        )
        apply_budget(mission, budget)
        mission.loop.set_aims(aim, aims)
        mission.decisions.cancel()
        left = mission.loop.remaining.readings
        if left is not None:
            left = max(0, left - mission.keep_passed(left))
            under_way = [probe for probe in mission.fleet.present if probe.plan is not None]
            for probe in sorted(under_way, key=lambda probe: probe.stages.number)[left:]:
                probe.drop_decision(mission.now_ns)
        mission.choose_again()
        mission.inbox.wake()


def apply_budget(mission: Mission, budget: Budget) -> None:
    """Set the total budget, and subtract the readings and drives so far."""
    mission.budget = budget
    whole = budget.readings
    readings = None if whole is None else max(0, whole - mission.loop.spent)
    mission.loop.remaining = replace(mission.loop.remaining, readings=readings)
    for probe in mission.probes.values():
        left = budget.minus(cost=probe.stages.driven)
        probe.own_budget = replace(probe.own_budget, metres=left.metres, seconds=left.seconds)


def change_map(
    mission: Mission,
    places: LivePlaces,
    fresh: Belief,
    further: Mapping[str, Belief] = MappingProxyType({}),
) -> None:
    """Replace the map of a mission; readings, metres and spent budget are kept.

    A decision that is being computed is discarded. Drives over occupied places are abandoned.

    Args:
        mission: the mission, in any state.
        places: places of the newer map; the places of the previous map come first, in order.
        fresh: belief over all places of the newer map, without readings.
        further: beliefs of the further quantities over the newer map, keyed by name.
    """
    with mission.lock:
        if mission.state == "ended":
            return
        loop, topology, closed = mission.loop, places.topology, places.closed
        logger.info(
            "map %d: %d places, %d of them new, %d occupied (%d before)",
            *(places.number, topology.n, topology.n - loop.topology.n),
            *(len(closed), len(loop.closed)),
        )
        mission.journal(
            MapChanged(
                number=places.number,
                mark=places.mark,
                places=topology.n,
                closed=len(closed),
                stamp_ns=mission.now_ns,
            )
        )
        apply_map(mission, places, fresh, further)
        mission.decisions.cancel()
        for probe in mission.fleet.present:
            plan, here = probe.plan or probe.stages.home, probe.standing()
            if plan is None:
                continue
            passed = plan.path.index(here) if here in plan.path else 0
            if is_cut(topology, plan.path[passed:], closed):
                logger.info(
                    "%sthe way to %s is not free any more: another place is chosen",
                    f"{probe.name}: " if probe.name else "",
                    topology.names[plan.path[-1]],
                )
                probe.call_back(mission.now_ns)
            else:  # new walls may hide a waypoint; removed walls may reveal a farther one
                before_it = probe.waypoint
                probe.update_waypoints()
                probe.send_again |= probe.waypoint != before_it
        if mission.state == "running":
            mission.choose_again()
        mission.inbox.wake()


def apply_map(
    mission: Mission, places: LivePlaces, fresh: Belief, further: Mapping[str, Belief]
) -> None:
    """Replace the map in the engine and the matcher; for the arguments see `change_map`."""
    topology = places.topology
    mission.loop.move_to(topology, fresh, places.closed, further)
    matcher = mission.probe.ingestion.matcher  # all probes share one matcher
    matcher.move_to(topology)
    mission.loop.snap_distance = matcher.snap_distance
    if mission.consulting is not None:
        mission.consulting.books.move_to(topology)
    mission.nothing_since_ns = None  # the new map may have a place to choose


def set_config(mission: Mission, config: MissionConfig) -> None:
    """Apply changed distances and times."""
    with mission.lock:
        mission.config = mission.fleet.config = mission.blocked.config = config
        mission.loop.retries = config.retries
        for probe in mission.probes.values():
            probe.set_config(config)
        mission.inbox.wake()


def leave(mission: Mission, name: str, why: str = "asked to leave") -> str:
    """Remove a probe from the mission; return an error text, or "" on success."""
    with mission.lock:
        problem = mission.fleet.leave(name, why, mission.now_ns)
        if not problem:
            mission.decisions.forget(mission.probes[name])
            if why == OFF_LIST:
                mission.probes[name].forget_messages()
            mission.wake_resting()
            mission.inbox.wake()
        return problem


def join(mission: Mission, name: str) -> str:
    """Let a probe rejoin the mission; return an error text, or "" on success."""
    with mission.lock:
        probe = mission.probes.get(name)
        if probe is not None and probe.sortie.waiting:
            probe.end_change(mission.now_ns)
        problem = mission.fleet.join(name, mission.now_ns)
        mission.inbox.wake()
        return problem


def add_probe(mission: Mission, name: str) -> None:
    """Add a probe to a mission of several probes; it takes part from its first pose on.

    Raises:
        ValueError: the mission has a probe of that name, or a single probe without a name.
    """
    with mission.lock:
        known = mission.probes
        if mission.make_probe is None or not name or name in known or "" in known:
            msg = f"probe {name!r} cannot join the mission of {list(known)}"
            raise ValueError(msg)
        probe = mission.make_probe(name)
        probe.set_config(mission.config)
        whole = mission.budget  # the delay may have changed since the start
        probe.own_budget = replace(probe.own_budget, metres=whole.metres, seconds=whole.seconds)
        probe.ingestion.pipeline.latency = mission.reading_latency
        probe.ingestion.set_open(yes=mission.state != "ended")
        mission.fleet.add(probe)


def clock_stepped(mission: Mission, step_ns: int, now_ns: int) -> None:
    """Pause after a forward jump of the node's clock [ns], and exclude the jump from budgets."""
    with mission.lock:
        if step_ns <= 1e9 * CLOCK_TOLERANCE:
            return
        reason = f"the clock went forward by {1e-9 * step_ns:.3f} s at once"
        logger.error(
            "%s: that is not charged to the budget, and the mission pauses. Resume it when the "
            "clock is right",
            reason,
        )
        mission.now_ns = now_ns
        mission.journal(ClockStepped(step_ns=step_ns, stamp_ns=now_ns))
        skip(mission, step_ns)
        for probe in mission.probes.values():
            probe.restart_checks()
        mission.pause(reason)


def skip(mission: Mission, step_ns: int) -> None:
    """Exclude a jump of the node's clock [ns] from all measured times."""
    mission.fleet.skip(step_ns)
    for probe in mission.probes.values():
        probe.stages.skip(step_ns)
        probe.passed.skip(step_ns)
        probe.sortie.skip(step_ns)
