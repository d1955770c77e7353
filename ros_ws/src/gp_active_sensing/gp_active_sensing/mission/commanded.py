"""The parts and the state of a mission, and its commands: begin, pause, resume, set the budget.

=========  ====================================================================================
idle       readings are used; nothing is decided yet
running    decides, waits for the place to be observed, decides again; drives to the end place
paused     readings are used; no decisions until `resume`
ended      the last waypoint stands; readings are counted, not used
=========  ====================================================================================
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.blocked import BlockedPlaces
from gp_active_sensing.mission.command_words import budget_words, loudness
from gp_active_sensing.mission.config import MissionConfig
from gp_active_sensing.mission.decisions import Decisions
from gp_active_sensing.mission.expert_queries import ExpertQueries
from gp_active_sensing.mission.fleet import OFF_LIST, Fleet
from gp_active_sensing.mission.inbox import Inbox
from gp_active_sensing.mission.input_log import InputLog
from gp_active_sensing.mission.latency import Latency
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.step_clock import StepClock
from gp_active_sensing.records.events import BudgetChanged, Event, StateChanged, StatusNoted
from gp_active_sensing.types import MEAN, Aim, Budget, Clock, Cost, Plan

__all__ = ["Commanded"]

logger = logging.getLogger(__name__)


class Commanded:
    """What is common to everything that a mission does; commands may come from any thread.

    Args:
        loop: the engine, before its first reading.
        probes: who takes part; one without a name, or several.
        inbox: what callbacks leave.
        config: distances and times.
        clock: monotonic seconds.
        journal: takes the events of the mission.
        make_probe: makes one that joins later, by its name; None = the list is closed.
    """

    def __init__(
        self,
        loop: SensingLoop,
        probes: Sequence[ProbeState],
        inbox: Inbox,
        config: MissionConfig,
        *,
        clock: Clock,
        journal: Callable[[Event], None] = lambda event: None,
        make_probe: Callable[[str], ProbeState] | None = None,
        step_clock: StepClock | None = None,
    ) -> None:
        self.loop = loop
        self._make_probe = make_probe
        self.fleet = Fleet(probes, config, journal)
        self.inbox = inbox
        self.config = config
        self.blocked = BlockedPlaces(loop, config, journal)
        self.budget = replace(probes[0].purse, readings=loop.remaining.readings)
        """What may be spent in all: readings of the mission, metres and seconds of each probe."""
        self.lock = threading.RLock()
        self.state = "idle"
        self.reason = ""
        """Why it is paused or over."""
        self.decisions = Decisions(loop, self.fleet, clock, journal)
        self.reading_latency = Latency()
        """From a reading to the belief."""
        for probe in probes:
            probe.ingestion.latency = self.reading_latency
        self.showing = False
        """What is known is being shown; anyone who shows it resets this."""
        self.last_job: int | None = None
        """Number of the job whose answer was the end."""
        self._last_words = False
        """The mission ended without a job, and what is known is still to be shown."""
        self.trace: InputLog | None = None
        """Hears which messages were used when, beside the events."""
        self.strangers: Counter[str] = Counter()
        """Messages of probes that are not in the mission."""
        self._now_ns = 0
        self._ticking = False
        """The node's clock shows a time."""
        self._ended_ns: int | None = None
        self._shown, self._shown_at = 0, clock()
        self._noted: StatusNoted | None = None
        self._noted_at = clock()
        self._clock = clock
        self._step_clock = StepClock(clock) if step_clock is None else step_clock
        self._journal = journal

    @property
    def probes(self) -> dict[str, ProbeState]:
        """Every probe by its name, gone ones too."""
        return self.fleet.probes

    @property
    def probe(self) -> ProbeState:
        """The probe of a mission of one, the first of several."""
        return next(iter(self.probes.values()))

    @property
    def consulting(self) -> ExpertQueries | None:
        """Asks an expert before a decision, where there is one that the policy wants to ask."""
        return self.decisions.consulting

    @property
    def plan(self) -> Plan | None:
        """The decision being carried out, in a mission of one."""
        return self.probe.plan

    @property
    def driven(self) -> Cost:
        """By all probes together."""
        total = Cost(0.0, 0.0)
        for probe in self.probes.values():
            total = total.plus(probe.stages.driven)
        return total

    @property
    def rejected(self) -> Counter[str]:
        """What was not used, of all probes, by the word of the reason."""
        total = Counter(self.strangers and {"unknown_probe": self.strangers.total()})
        for probe in self.probes.values():
            total += Counter(dict(probe.ingestion.rejected))  # another thread may be counting
        return total + self.inbox.refused

    @property
    def until_ns(self) -> int:
        """Up to when the mission has come, on the node's clock."""
        return self._now_ns if self._ended_ns is None else self._ended_ns

    # -- commands ------------------------------------------------------------------------------

    def start(self, who: str = "") -> str:
        """Begin; return why it cannot, "" when it does.

        Args:
            who: asked for it, in words for the log; "" = nobody had to.
        """
        with self.lock:
            if self.state != "idle":
                return f"the mission is {self.state} already" + self._because()
            logger.info(
                "the mission begins%s: %d places, budget %s",
                f" ({who})" if who else "",
                self.loop.topology.n,
                budget_words(self.budget, self.loop.aim),
            )
            self._go_on()
            return ""

    def pause(self, reason: str = "asked to") -> str:
        """Take no more decisions; return why it cannot, "" when it does."""
        with self.lock:
            if self.state != "running":
                return f"the mission is {self.state}, not running" + self._because()
            stage = self.decisions.stage
            logger.log(
                loudness(reason), "paused at stage %d (%s); the last waypoint stands", stage, reason
            )
            self._set_state("paused", reason)
            self.decisions.give_up()
            return ""

    def resume(self, who: str = "asked to") -> str:
        """Go on; return why it cannot, "" when it does.

        Args:
            who: asked for it, in words for the log.
        """
        with self.lock:
            if self.state != "paused":
                return f"the mission is {self.state}, not paused" + self._because()
            logger.info("resumed at stage %d (%s)", self.decisions.stage, who)
            for probe in self.probes.values():
                probe.at = None  # it may have been driven elsewhere
                probe.send_again = True
                probe.sent_ns = self._now_ns
            self._rest_no_more()
            self._go_on()
            return ""

    def unreachable(
        self, name: str = "", why: str = "reported as unreachable", *, place: int | None = None
    ) -> str:
        """Choose another place than the one a probe is sent to, which is blocked for a while.

        Args:
            name: of the probe.
            why: in words.
            place: which one; None = wherever it is sent to.

        Returns:
            Why it cannot, "" when it does.
        """
        with self.lock:
            probe = self.probes.get(name)
            if probe is None or probe.plan is None or self.state != "running":
                return "no place is being driven to"
            if place is not None and place != probe.plan.waypoints[0]:
                return "another place is being driven to by now"
            self.blocked.give_up(probe, self._now_ns, why)
            self.inbox.wake()
            return ""

    def set_budget(self, budget: Budget, aim: Aim | None = None) -> None:
        """Change what may be spent in all: readings of the mission, metres and seconds of a probe.

        What was spent counts; with less left than was promised, drives are given up.

        Args:
            budget: from now on.
            aim: error of the map at which the mission is over.
        """
        with self.lock:
            if self.state == "ended":
                logger.warning("the mission is over: another budget changes nothing")
                return
            before = budget_words(self.budget, self.loop.aim)
            logger.info(
                "the budget is now %s (was %s); readings spent or under way: %d, driven: %.0f m",
                *(budget_words(budget, aim), before, self.loop.spent, self.driven.metres),
            )
            self._journal(
                BudgetChanged(
                    readings=budget.readings,
                    metres=budget.metres,
                    seconds=budget.seconds,
                    error=None if aim is None else aim.error,
                    error_of=MEAN if aim is None else aim.of,
                    stamp_ns=self._now_ns,
                )
            )
            self.take_budget(budget)
            self.loop.aim = aim
            self.decisions.give_up()
            left = self.loop.remaining.readings
            if left is not None:
                under_way = [probe for probe in self.fleet.present if probe.plan is not None]
                for probe in sorted(under_way, key=lambda probe: probe.stages.number)[left:]:
                    probe.give_up(self._now_ns)
            self._choose_again()
            self.inbox.wake()

    def take_budget(self, budget: Budget) -> None:
        """Record what may be spent in all."""
        self.budget = budget
        readings = budget.readings
        if readings is not None:
            readings = max(0, readings - self.loop.spent)
        self.loop.remaining = replace(self.loop.remaining, readings=readings)
        for probe in self.probes.values():
            left = budget.minus(cost=probe.stages.driven)
            probe.purse = replace(probe.purse, metres=left.metres, seconds=left.seconds)

    def set_config(self, config: MissionConfig) -> None:
        """Go on with other distances and times."""
        with self.lock:
            self.config = self.fleet.config = self.blocked.config = config
            self.loop.retries = config.retries
            for probe in self.probes.values():
                probe.set_config(config)
            self.inbox.wake()

    def leave(self, name: str, why: str = "asked to leave") -> str:
        """Let a probe take no part any more; return why it cannot, "" when it does."""
        with self.lock:
            problem = self.fleet.leave(name, why, self._now_ns)
            if not problem:
                self.decisions.forget(self.probes[name])
                if why == OFF_LIST:
                    self.probes[name].forget_messages()
                self._rest_no_more()
                self.inbox.wake()
            return problem

    def join(self, name: str) -> str:
        """Let a probe that has left take part again; return why it cannot, "" when it does."""
        with self.lock:
            problem = self.fleet.join(name, self._now_ns)
            self.inbox.wake()
            return problem

    def add(self, name: str) -> None:
        """Let one more probe take part in a mission of several, from its first pose on.

        Raises:
            ValueError: the mission has one of that name, or one without a name.
        """
        with self.lock:
            known = self.probes
            if self._make_probe is None or not name or name in known or "" in known:
                msg = f"probe {name!r} cannot join the mission of {list(known)}"
                raise ValueError(msg)
            probe = self._make_probe(name)
            probe.set_config(self.config)
            whole = self.budget  # what it is by now
            probe.purse = replace(probe.purse, metres=whole.metres, seconds=whole.seconds)
            probe.ingestion.latency = self.reading_latency
            probe.ingestion.open = self.state != "ended"
            for other in known.values():
                other.ahead.drop()  # of a single one: it counts on being alone
            self.fleet.add(probe)

    def accept_gated(self) -> int:
        """Use the readings that were set aside by the gate; return how many those are."""
        with self.lock:
            found = sum(probe.accept_gated() for probe in self.probes.values())
            self.inbox.wake()
            return found

    def _go_on(self) -> None:
        self._set_state("running", "")
        for probe in self.probes.values():
            probe.arrival.forget()
            probe.progress.forget()
            probe.sensor.forget()
            probe.since = self._clock()
            probe.stages.go_on(self._now_ns, probe.ingestion.metres)
        self.inbox.wake()

    def _set_state(self, state: str, reason: str) -> None:
        self.state, self.reason = state, reason
        probes = {name: probe.whereabouts() for name, probe in self.probes.items()}
        self._journal(
            StateChanged(state=state, reason=reason, stamp_ns=self._now_ns, probes=probes)
        )

    def _because(self) -> str:
        return f" ({self.reason})" if self.reason else ""

    # -- asking again --------------------------------------------------------------------------

    def _rest_no_more(self) -> None:
        """Ask again for probes that nothing was chosen for: more may be left now."""
        for probe in self.probes.values():
            if probe.resting and not probe.home:
                probe.resting = ""
                probe.since = self._clock()

    def _choose_again(self) -> None:
        """Ask again for every probe that has nothing to do but to go home, or is there."""
        self._rest_no_more()
        if self.loop.remaining.readings == 0:
            return
        for probe in self.fleet.present:
            if probe.home or probe.stages.home is not None:
                probe.call_back(self._now_ns)
        self.reason = ""
