"""Several simulated probes in rounds: all decide, drive and read before any reading is used.

That is how searches in batches are defined and compared: T rounds of B readings, none of which is
known before the round is over. Without nodes and without files; the mission of the nodes, where
each probe decides when it arrives, is `gp_active_sensing.sim.team`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gp_active_sensing.belief.leave_one_out import Explained
from gp_active_sensing.belief.promise import to_record
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning.base import no_plan
from gp_active_sensing.records.events import stage_record
from gp_active_sensing.records.metrics import Scorer
from gp_active_sensing.records.regret import Regret, objective_of
from gp_active_sensing.sim.probe import SimulatedProbe
from gp_active_sensing.sim.scenario import Scenario
from gp_active_sensing.sim.world import RANDOM, World, begun_elsewhere
from gp_active_sensing.types import Budget, Cost, Plan, Reading, Route

__all__ = ["Rounds"]


@dataclass
class _Member:
    """A probe, and what it does in a round.

    Args:
        name: of the probe.
        probe: where it is.
        budget: what is left of its metres and seconds, and where it has to end.
        home: it was sent to where it has to end.
        plan: of this round.
        stage: number of its decision.
        got: values read at its goal.
        paid: readings of the budget that its way cost.
        fresh: places on it that nobody had observed.
    """

    name: str
    probe: SimulatedProbe
    budget: Budget
    home: bool = False
    plan: Plan = field(default_factory=lambda: no_plan("nothing was decided yet"))
    stage: int = 0
    got: list[float] = field(default_factory=list)
    paid: int = 0
    fresh: int = 0


class Rounds:
    """A mission of several probes in rounds.

    The budget of readings is shared; each probe may drive the metres and seconds of the budget. A
    round lasts as long as the longest way in it.

    Args:
        scenario: what is simulated; ``probes`` says how many there are.
        world: its map, truth and sensor.
        loop: the engine, before its first reading.

    Raises:
        ConfigError: an expert, which rounds know nothing of.
    """

    def __init__(self, scenario: Scenario, world: World, loop: SensingLoop) -> None:
        if scenario.expert.kind != "none":
            msg = (
                f"expert.kind: rounds of several probes ask no expert, got {scenario.expert.kind}; "
                "leave it out, or set probes: 1"
            )
            raise ConfigError(msg)
        self.scenario = scenario
        self.world = world
        self.loop = loop
        self.members = [
            _Member(name, own.probe(), own.budget)
            for name, own in zip(scenario.names or ("",), _worlds(scenario, world), strict=True)
        ]
        self.metres = 0.0
        """Driven by all probes together."""
        self.seconds = 0.0
        """That all rounds took."""
        self.reason = ""
        """Why the mission ended; "" while it goes on."""
        objective = objective_of(loop.policy, scenario.seek)
        self._regret = Regret(world.truth, objective) if objective else None
        self._scorer = Scorer(world.truth, world.sensor)
        self._explained = Explained()
        self._visits: Counter[int] = Counter()
        self._stage = 0
        self._spent = 0

    def play(self) -> Iterator[dict[str, Any]]:
        """Yield the records of all stages, those of a round when it is over."""
        while not self.reason:
            yield from self.round()

    def round(self) -> list[dict[str, Any]]:
        """Play one round; return a record for each probe that went to a place."""
        sent = self._decide()
        observed = int(self.loop.belief.observed.sum())
        to_read: list[tuple[int, int, int]] = []
        took = 0.0
        for number, member in enumerate(sent):
            passed, cost = self._drive(member)
            took = max(took, cost.seconds)
            to_read += [(stamp, number, place) for place, stamp in passed]
        for stamp, number, place in sorted(to_read):
            self._read(sent[number], place, stamp)
        self.seconds += took
        went = [member for member in sent if member.plan.waypoints]
        if not went:
            self.reason = self.members[-1].plan.reason or "nothing is left to observe"
        return self._records(went, observed)

    # -- parts of a round ----------------------------------------------------------------------

    def _decide(self) -> list[_Member]:
        """Ask for every probe; return those that drive somewhere."""
        asked = [member for member in self.members if not member.home]
        pending: list[int] = []
        for number, member in enumerate(asked):
            left = self.loop.remaining.readings
            self.loop.remaining = replace(member.budget, readings=left)
            member.plan = self.loop.ask(
                member.probe.at,
                pending=pending,
                probe=member.name,
                waiting={other.name: other.probe.at for other in asked[number + 1 :]},
                now_ns=round(1e9 * self.seconds),
            )
            member.got, member.paid, member.fresh = [], 0, 0
            if member.plan.waypoints:
                self._stage += 1
                member.stage = self._stage
                pending.append(member.plan.path[-1])
            else:
                member.home = bool(member.plan.path)
        return [member for member in asked if member.plan.path]

    def _drive(self, member: _Member) -> tuple[list[tuple[int, int]], Cost]:
        """Drive a plan's path; return which places are to be read when [ns], and its cost."""
        plan, probe = member.plan, member.probe
        route = Route(plan.path, plan.cost)
        cost = probe.cost(route)
        probe.drive(Route(plan.path, cost))
        passed: list[tuple[int, int]] = []
        elapsed = 0.0
        while not probe.arrived:
            dt = probe.seconds_to_next
            elapsed += dt
            stamp = round(1e9 * (self.seconds + min(elapsed, cost.seconds)))
            passed.extend((place, stamp) for place in probe.advance(dt))
        member.budget = member.budget.minus(cost=cost)
        self.metres += cost.metres
        if not self.scenario.sensor.on_the_way:
            passed = passed[-1:] if plan.waypoints else []
        return passed, cost

    def _read(self, member: _Member, place: int, stamp_ns: int) -> None:
        """Read a place and tell; a goal without a reading is tried again, or set aside."""
        is_goal = bool(member.plan.waypoints) and place == member.plan.path[-1]
        while self.loop.wants(place):
            values = [
                reading.value
                for reading in self._sense(place, stamp_ns)
                if self._tell(member, reading)
            ]
            if not is_goal:
                return
            member.got += values
            if member.got or not self.loop.miss(place):
                return

    def _sense(self, place: int, stamp_ns: int) -> Iterator[Reading]:
        for _ in range(self.scenario.sensor.readings):
            visit = self._visits[place]
            self._visits[place] += 1
            reading = self.world.sensor.read(place, visit, stamp_ns)
            if reading is not None:
                yield reading

    def _tell(self, member: _Member, reading: Reading) -> bool:
        before = self.loop.belief.observed
        place = reading.location
        is_new = place is not None and not bool(before[place])
        report = self.loop.tell([reading])
        member.paid += len(report.new_places)
        member.fresh += int(is_new and report.accepted)
        return bool(report.accepted)

    # -- what came of it -----------------------------------------------------------------------

    def _records(self, went: Sequence[_Member], observed: int) -> list[dict[str, Any]]:
        """Return the records of a round's decisions; what is predicted is so after the round.

        Args:
            went: the probes that went somewhere, in the order of their decisions.
            observed: places observed before the round.
        """
        loop, topology = self.loop, self.world.topology
        found = loop.belief.mixture()
        mean, _ = found.moments()
        self._explained = self._explained.after(loop.belief)
        errors = {
            "weights": loop.belief.weights.tolist(),
            "length_scales": [h.length_scales for h in loop.belief.hyperparameters],
            "kernels": [h.kernel for h in loop.belief.hyperparameters],
            **self._scorer.of(loop.belief, self.seconds, found),
            **to_record(loop.belief.promise(topology.weights, found)),
            **self._explained.to_record(),
        }
        records = []
        for member in went:
            goal = member.plan.path[-1]
            observed += member.fresh
            self._spent += member.paid
            regret: dict[str, Any] = {}
            if self._regret is not None:
                regret = self._regret.stage(goal if member.got else None, mean, self.seconds)
            records.append(
                stage_record(
                    stage=member.stage,
                    plan=member.plan,
                    name=topology.names[goal],
                    position=topology.positions[goal].tolist(),
                    value=sum(member.got) / len(member.got) if member.got else None,
                    observed=observed,
                    visits=self._spent,
                    set_aside=goal in loop.set_aside,
                    probe=member.name,
                    driven_metres=self.metres,
                    driven_seconds=self.seconds,
                    **errors,
                    **regret,
                )
            )
        return records


def _worlds(scenario: Scenario, world: World) -> list[World]:
    """Return the world as each probe begins in it: the first where the scenario says."""
    worlds = [world]
    for number in range(1, scenario.probes):
        if world.start is None:
            worlds.append(world)
            continue
        taken = [own.start for own in worlds if own.start is not None]
        worlds.append(begun_elsewhere(world, scenario, RANDOM, number, taken))
    return worlds
