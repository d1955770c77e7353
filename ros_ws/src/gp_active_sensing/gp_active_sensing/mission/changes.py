"""Change a mission while it goes on: budget, distances, clock, who takes part."""

from __future__ import annotations

import logging
from dataclasses import replace

from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.fleet import OFF_LIST
from gp_active_sensing.mission.log_messages import budget_words
from gp_active_sensing.mission.mission import Mission
from gp_active_sensing.records.events import BudgetChanged, ClockStepped
from gp_active_sensing.types import MEAN, Aim, Budget

__all__ = [
    "add_probe",
    "clock_stepped",
    "join",
    "leave",
    "set_budget",
    "set_config",
    "skip",
    "take_budget",
]

logger = logging.getLogger(__name__)


def set_budget(mission: Mission, budget: Budget, aim: Aim | None = None) -> None:
    """Change what may be spent in all: readings of the mission, metres and seconds of a probe.

    What was spent counts; with less left than was promised, drives are given up.

    Args:
        mission: to be changed.
        budget: from now on.
        aim: error of the map at which the mission is over.
    """
    with mission.lock:
        if mission.state == "ended":
            logger.warning("the mission is over: another budget changes nothing")
            return
        before = budget_words(mission.budget, mission.loop.aim)
        logger.info(
            "the budget is now %s (was %s); readings spent or under way: %d, driven: %.0f m",
            *(budget_words(budget, aim), before, mission.loop.spent, mission.driven.metres),
        )
        mission.journal(
            BudgetChanged(
                readings=budget.readings,
                metres=budget.metres,
                seconds=budget.seconds,
                error=None if aim is None else aim.error,
                error_of=MEAN if aim is None else aim.of,
                stamp_ns=mission.now_ns,
            )
        )
        take_budget(mission, budget)
        mission.loop.aim = aim
        mission.decisions.give_up()
        left = mission.loop.remaining.readings
        if left is not None:
            under_way = [probe for probe in mission.fleet.present if probe.plan is not None]
            for probe in sorted(under_way, key=lambda probe: probe.stages.number)[left:]:
                probe.give_up(mission.now_ns)
        mission.choose_again()
        mission.inbox.wake()


def take_budget(mission: Mission, budget: Budget) -> None:
    """Record what may be spent in all."""
    mission.budget = budget
    readings = budget.readings
    if readings is not None:
        readings = max(0, readings - mission.loop.spent)
    mission.loop.remaining = replace(mission.loop.remaining, readings=readings)
    for probe in mission.probes.values():
        left = budget.minus(cost=probe.stages.driven)
        probe.purse = replace(probe.purse, metres=left.metres, seconds=left.seconds)


def set_config(mission: Mission, config: MissionConfig) -> None:
    """Go on with other distances and times."""
    with mission.lock:
        mission.config = mission.fleet.config = mission.blocked.config = config
        mission.loop.retries = config.retries
        for probe in mission.probes.values():
            probe.set_config(config)
        mission.inbox.wake()


def leave(mission: Mission, name: str, why: str = "asked to leave") -> str:
    """Let a probe take no part any more; return why it cannot, "" when it does."""
    with mission.lock:
        problem = mission.fleet.leave(name, why, mission.now_ns)
        if not problem:
            mission.decisions.forget(mission.probes[name])
            if why == OFF_LIST:
                mission.probes[name].forget_messages()
            mission.rest_no_more()
            mission.inbox.wake()
        return problem


def join(mission: Mission, name: str) -> str:
    """Let a probe that has left take part again; return why it cannot, "" when it does."""
    with mission.lock:
        problem = mission.fleet.join(name, mission.now_ns)
        mission.inbox.wake()
        return problem


def add_probe(mission: Mission, name: str) -> None:
    """Let one more probe take part in a mission of several, from its first pose on.

    Raises:
        ValueError: the mission has one of that name, or one without a name.
    """
    with mission.lock:
        known = mission.probes
        if mission.make_probe is None or not name or name in known or "" in known:
            msg = f"probe {name!r} cannot join the mission of {list(known)}"
            raise ValueError(msg)
        probe = mission.make_probe(name)
        probe.set_config(mission.config)
        whole = mission.budget  # what it is by now
        probe.purse = replace(probe.purse, metres=whole.metres, seconds=whole.seconds)
        probe.ingestion.latency = mission.reading_latency
        probe.ingestion.open = mission.state != "ended"
        for other in known.values():
            other.ahead.drop()  # of a single one: it counts on being alone
        mission.fleet.add(probe)


def clock_stepped(mission: Mission, step_ns: int, now_ns: int) -> None:
    """Record that the clock went forward by more than the time that passed.

    Args:
        mission: whose clock it is.
        step_ns: by how much more [ns]; not charged.
        now_ns: time of the node's clock after it.
    """
    with mission.lock:
        if step_ns <= 1e9 * mission.config.clock_tolerance:
            return
        said = f"the clock went forward by {1e-9 * step_ns:.3f} s at once"
        logger.error(
            "%s: that is not charged to the budget, and the mission pauses. Resume it when the "
            "clock is right",
            said,
        )
        mission.now_ns = now_ns
        mission.journal(ClockStepped(step_ns=step_ns, stamp_ns=now_ns))
        skip(mission, step_ns)
        for probe in mission.probes.values():
            probe.arrival.forget()
            probe.progress.forget()
        mission.pause(said)


def skip(mission: Mission, step_ns: int) -> None:
    """Charge nothing for a time that did not pass [ns], and let no probe be lost for it."""
    mission.fleet.skip(step_ns)
    for probe in mission.probes.values():
        probe.stages.skip(step_ns)
