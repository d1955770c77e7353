"""Compute decisions one at a time; the waypoints of the other probes count as pending."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping

from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.mission.clocks import Latency
from gp_active_sensing.mission.course import places_along
from gp_active_sensing.mission.expert_queries import ExpertQueries
from gp_active_sensing.mission.fleet import Fleet
from gp_active_sensing.mission.probe import ProbeState
from gp_active_sensing.mission.requests import DecisionRequest
from gp_active_sensing.planning.budget import BudgetConstraint, in_metres
from gp_active_sensing.records.events import DecisionAsked, DecisionTaken, Event, LimitsMoved
from gp_active_sensing.types import Clock, Plan

logger = logging.getLogger(__name__)


class Decisions:
    """Queue of the decisions to compute; used under the mission's lock."""

    def __init__(
        self, loop: SensingLoop, fleet: Fleet, clock: Clock, journal: Callable[[Event], None]
    ) -> None:
        self.loop = loop
        self.fleet = fleet
        self.stage = 0
        """Number of decisions that the mission has taken."""
        self.last_plan: Plan | None = None
        self.running = False
        self.number = 0
        """Number of the newest planning job; the plan of an older job is dropped."""
        self.planned_probe = ""
        """Name of the probe for which the newest job plans."""
        self.open: DecisionRequest | None = None
        """Unfinished job of a killed process, which is computed first; None = none."""
        self.latency = Latency()
        """Statistics of the time between the end of a visit and the choice of the next waypoint."""
        self.round: set[str] = set()
        """Names of the probes without a decision in the present round (`mission.together`)."""
        self.refusal = ""
        """Reason to refuse the newest plan and pause the mission; "" = not refused."""
        self.no_way = ""
        """Reason why the probe cannot drive the newest plan from its position; "" = none."""
        self._limits = loop.beyond, loop.declared
        """Places beyond the limits on the field, and places declared safe, at the last decision."""
        self.consulting: ExpertQueries | None = None
        self._clock = clock
        self._journal = journal

    def cancel(self) -> None:
        """Discard the plan that is being computed."""
        self.number += 1
        self.running = False
        self.refusal = ""
        self.open = None
        if self.consulting is not None:
            self.consulting.cancel()

    def forget(self, probe: ProbeState) -> None:
        """Discard unfinished planning for `probe`, which has left the mission."""
        if self.running and self.planned_probe == probe.name:
            self.number += 1
            self.running = False
        if self.open is not None and self.open.probe == probe.name:
            self.open = None
        if self.consulting is not None and not self.fleet.waiting:
            self.consulting.cancel()

    def next_job(self, now_ns: int) -> DecisionRequest | None:
        """Return the next planning job; None if no decision is due or a job is running."""
        if self.running:
            return None
        if self.open is not None:
            job, self.open, self.running = self.open, None, True
            return job
        for probe in self._asked_for(now_ns):
            if not self._has_position(probe):
                continue
            if not self._has_consulted(probe, now_ns):
                return None
            probe.note_start(probe.at)
            pending, waiting = self.fleet.pending(probe), self._others_waiting(probe, now_ns)
            passed = self.fleet.passed()
            self._journal(
                DecisionAsked(
                    at=probe.at,
                    pending=pending,
                    passed=passed,
                    waiting=waiting,
                    where=probe.whereabouts(),
                    stamp_ns=now_ns,
                    probe=probe.name,
                )
            )
            # The job's copy of the engine must agree with this engine on the observed places.
            self.loop.advance(now_ns)
            self.running = True
            self.number += 1
            self.round.discard(probe.name)
            return self.job_for(probe, pending, waiting, now_ns, passed)
        return None

    def _asked_for(self, now_ns: int) -> list[ProbeState]:
        """Return the probes that wait for a decision; in a round, only the probes of the round."""
        waiting = [probe for probe in self.fleet.waiting if not probe.needs_reading]
        if not self.fleet.config.together:
            return waiting
        waiting = [probe for probe in self.fleet.present if probe in waiting]
        if not any(probe.name in self.round for probe in waiting):
            first = self.loop.decisions == 0 and self.fleet.awaited(now_ns)
            if first or self.fleet.under_way:
                return []
            self.round = {probe.name for probe in waiting}
        return [probe for probe in waiting if probe.name in self.round]

    def _has_consulted(self, probe: ProbeState, now_ns: int) -> bool:
        if self.consulting is None:
            return True
        left = self.loop.readings_for(probe.name, self.fleet.pending(probe))
        return self.consulting.ready(now_ns, left, lambda: _spare(probe, now_ns))

    def _others_waiting(self, probe: ProbeState, now_ns: int) -> dict[str, int | None]:
        waiting = (other for other in self._asked_for(now_ns) if other is not probe)
        others = [other for other in waiting if other.carried == probe.carried]
        return {other.name: other.at for other in others if self._has_position(other)}

    def job_for(
        self,
        probe: ProbeState,
        pending: tuple[int, ...],
        waiting: Mapping[str, int | None],
        now_ns: int,
        passed: tuple[int, ...] = (),
    ) -> DecisionRequest:
        """Return the planning job for a probe; for the arguments see `DecisionRequest`."""
        self.planned_probe = probe.name
        settled = probe.stages.unrecorded if probe.flows else []
        return DecisionRequest(
            probe.snapshot(now_ns),
            probe.at,
            self.number,
            probe.finished or next(iter(settled), None),
            probe.since,
            probe=probe.name,
            pending=pending,
            passed=passed,
            waiting=waiting,
            now_ns=now_ns,
            heading=probe.ingestion.heading,
            carried=probe.carried,
        )

    def _has_position(self, probe: ProbeState) -> bool:
        """Set the place where the decision starts; return whether a decision is possible."""
        pose = probe.ingestion.track.newest
        if probe.at is None and pose is not None:
            probe.at = probe.standing()
        if probe.at is not None:
            probe.at = self.loop.open_place(probe.at)
            return True
        if pose is None:
            return probe.anywhere  # otherwise a decision needs the probe's position
        if probe.needs_start:
            return False  # the first place becomes the end place: it must be on the map
        matcher = probe.ingestion.matcher
        place, metres = matcher.nearest(pose.x, pose.y, pose.z)
        logger.warning(
            "%s is off the map: its pose (%.1f, %.1f) is %.0f m from the nearest place, %s "
            "(mission.snap_distance is %g m). Any place may be the first",
            probe.name or "the probe", pose.x, pose.y,
            metres, self.loop.topology.names[place], matcher.snap_distance,
        )  # fmt: skip
        return True

    def adopt(self, job: DecisionRequest, plan: Plan, now_ns: int) -> bool:
        """Use the plan of a finished job unless the plan is obsolete; return whether it is used."""
        self.running = False
        probe = self.fleet.probes[job.probe]
        if probe.gone:
            return False
        asked = job.loop  # the plan may use places that `asked` has opened
        self.loop.set_limits(asked.declared, asked.began, asked.beyond)
        self._note_limits(probe, now_ns)
        self.no_way = no_way(probe, plan)
        place = plan.waypoint
        blocked = bool(self.no_way) and place is not None  # the mission blocks the place
        self.refusal = "" if blocked else self.no_way or first_leg_refusal(probe, plan)
        obsolete = place is not None and not self._is_valid(probe, place, asked)
        if blocked or self.refusal or obsolete:
            self.round.add(probe.name)
            return False
        self.last_plan = probe.last_plan = plan
        if self.consulting is not None:
            self.consulting.settle()
        if place is not None:
            self.loop.adopt(asked, probe.name)
            self._carry_out(probe, plan, job.since, now_ns)
            return True
        probe.finished = None
        self.loop.release(probe.name)
        owed = probe.stages.owed(now_ns, probe.ingestion.metres)
        changes = probe.can_read_more(job.at, self.fleet.pending(probe), owed)
        if plan.path:
            self.loop.adopt(asked, probe.name)
            probe.begin_return(plan, job.at, now_ns, sortie=changes)
        else:
            probe.home = probe.sortie.due = changes and job.at == probe.own_budget.end
            probe.resting = plan.reason or "nothing is left to observe"
        return True

    def _is_valid(self, probe: ProbeState, waypoint: int, asked: SensingLoop) -> bool:
        pending = self.fleet.pending(probe)
        read = probe.observed[waypoint] and not asked.reservations.is_due(waypoint, probe.lead)
        if read or waypoint in pending:
            return False
        left = self.loop.readings_for(probe.name, pending)
        return left is None or left > 0

    def _carry_out(self, probe: ProbeState, plan: Plan, since: float, now_ns: int) -> None:
        probe.journal(
            DecisionTaken(
                stage=self.stage + 1,
                plan=plan,
                policy_state=self.loop.policy_state,
                at=probe.at,
                where=probe.whereabouts(),
                again=self.loop.reservations.is_due(plan.path[-1], probe.lead),
                left=probe.remaining_in_all,
                stamp_ns=now_ns,
            )
        )
        self.stage += 1
        probe.set_out(plan, self.stage, now_ns)
        self.latency.add(self._clock() - since)

    def _note_limits(self, probe: ProbeState, now_ns: int) -> None:
        loop, (before, declared) = self.loop, self._limits
        if (loop.beyond, loop.declared) == (before, declared):
            return
        self._limits = loop.beyond, loop.declared
        closed = sorted(loop.beyond - before)
        probe.journal(
            LimitsMoved(
                closed=tuple(closed),
                opened=tuple(sorted(before - loop.beyond)),
                declared=tuple(sorted(loop.declared)),
                began=tuple(sorted(loop.began)),
                stamp_ns=now_ns,
            )
        )
        n = loop.topology.n
        logger.info("limits: %d of %d places are open", n - len(loop.beyond), n)
        if wrong := [loop.topology.names[p] for p in closed if p in loop.declared]:
            logger.error(
                "%d places near the start were declared safe, but their readings are beyond the "
                "limits, such as %s; start elsewhere, or change limits.at_least and "
                "limits.at_most",
                *(len(wrong), wrong[0]),
            )

    def replay_limits(self, event: LimitsMoved) -> None:
        """After a restart, close and open the places that a journalled event names."""
        self.loop.replay_limits(event.closed, event.opened, event.declared, event.began)
        self._limits = self.loop.beyond, self.loop.declared


def _spare(probe: ProbeState, now_ns: int) -> float:
    """Return how long a probe may wait and still reach its end place within its budget [s]."""
    left, loop = probe.remaining, probe.loop
    if left.seconds is None:
        return math.inf
    spare = left.seconds - probe.stages.owed(now_ns, probe.ingestion.metres).seconds
    if probe.at is not None and left.end is not None:
        seen = loop.seen(probe.at, probe.ingestion.heading)
        home = BudgetConstraint(seen, in_metres(left, loop.speed)).way_home(probe.at)
        if home is not None:
            spare -= home.cost.seconds if loop.speed is None else home.cost.metres / loop.speed
    return spare


def no_way(probe: ProbeState, plan: Plan) -> str:
    """Return why a probe cannot drive a plan from its position; "" = the probe can."""
    topology, start = probe.loop.topology, probe.position
    if not plan.path or start is None or places_along(topology, start, plan.path):
        return ""
    return (
        f"no way over the ground of map {topology.name!r}"
        f"{' within the limits' if probe.loop.beyond else ''} leads {probe.name or 'the probe'}"
        f" from ({start[0]:.1f}, {start[1]:.1f}) to {topology.names[plan.path[-1]]}"
    )


def first_leg_refusal(probe: ProbeState, plan: Plan) -> str:
    """Return why the probe's first drive is refused; "" = the drive is allowed."""
    config, ingestion = probe.config, probe.ingestion
    pose = ingestion.track.newest
    if probe.stages.number or not plan.path or pose is None or config.follow == "probe":
        return ""
    topology, matcher = probe.loop.topology, ingestion.matcher
    # A probe at the map's edge may be as far as snap_distance outside it.
    extent = matcher.extent + matcher.snap_distance
    longest = extent if config.first_leg is None else config.first_leg
    x, y, _ = topology.goals[plan.path[-1]].tolist()
    metres = math.hypot(x - pose.x, y - pose.y)
    if metres <= longest:
        return ""
    limit = (
        f"the map's extent of {longest:.0f} m"
        if config.first_leg is None
        else f"mission.first_leg of {longest:g} m"
    )
    return (
        f"the first leg{f' of {probe.name}' if probe.name else ''} would be {metres:.0f} m, from "
        f"its pose ({pose.x:.1f}, {pose.y:.1f}) to {topology.names[plan.path[-1]]} at "
        f"({x:.1f}, {y:.1f}), more than {limit}. Is {topology.name!r} the right map, and the pose "
        f"in its frame {topology.frame!r} (pose.datum of a NavSatFix)? If all is right, set "
        f"mission.first_leg to {math.ceil(metres)}.0 or more. Then call ~/resume"
    )
