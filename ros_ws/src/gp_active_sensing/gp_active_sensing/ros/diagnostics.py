"""Diagnostics of ``active_sensing``: state, inputs, planner, probes and missing topics."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSProfile

from gp_active_sensing.mission.factory import MissionComponents
from gp_active_sensing.mission.fleet import LEFT
from gp_active_sensing.mission.log_messages import advice
from gp_active_sensing.mission.names import probe_topic
from gp_active_sensing.mission.probe import NO_POSE, ProbeState
from gp_active_sensing.mission.recording import latencies
from gp_active_sensing.ros import qos
from gp_active_sensing.ros import to_messages as outputs
from gp_active_sensing.ros.node_base import GuardedNode, Throttle
from gp_active_sensing.ros.qos import TopicMonitor, received_at
from gp_active_sensing.ros.to_messages import type_name
from gp_active_sensing.types import Budget
from gp_active_sensing.util.wording import shown

OK, WARN, ERROR = 0, 1, 2
ASKED_FOR = ("settling",)
"""Reasons for rejections that the user requests by a parameter; they are not problems."""


def probe_state(probe: ProbeState) -> str:
    """Return the state of a probe in one or two words."""
    if probe.gone:
        if probe.gone.startswith(LEFT):
            return "left"
        return "absent" if probe.gone == NO_POSE else "silent"
    if probe.plan is not None:
        return "driving"
    if probe.stages.home is not None:
        return "going home"
    if probe.home:
        return "home"
    return "resting" if probe.resting else "deciding"


def reading_topic(probe: ProbeState, streams: Collection[str]) -> str:
    """Return the topic whose readings complete a probe's visits to places."""
    usual, own = probe_topic(probe.name, "reading"), []
    for topic in streams:
        owner, _, kind = topic.rpartition("/")
        if owner == probe.name and kind not in _STREAMS:
            own.append(topic)
    return usual if usual in streams or not own else own[0]


def probe_status(
    probe: ProbeState, streams: Mapping[str, TopicMonitor], refused: Counter[str]
) -> tuple[int, str, dict[str, object]]:
    """Return level, summary and values of a probe's diagnostic status."""
    pose = streams[probe_topic(probe.name, "pose")]
    reading = streams[reading_topic(probe, streams)]
    intakes = probe.ingestion.intakes
    state, target, left = probe_state(probe), probe.target, probe.remaining_in_all
    why = (probe.gone or probe.resting).removeprefix(LEFT)
    waypoint = "" if target is None else probe.loop.topology.names[target]
    missing = ", ".join(stream.name for stream in (pose, reading) if not stream.count)
    values: dict[str, object] = {
        "state": state,
        "why": why,
        "waypoint": waypoint,
        "missing_topics": missing,
        "metres_left": "unlimited" if left.metres is None else left.metres,
        "seconds_left": "unlimited" if left.seconds is None else left.seconds,
        **sortie_values(probe),
        "metres_driven": probe.stages.driven.metres,
        "seconds_driven": probe.stages.driven.seconds,
        "poses_received": pose.count,
        "poses_per_second": pose.rate,
        "seconds_since_pose": pose.silence,
        "readings_received": reading.count,
        "readings_per_second": reading.rate,
        "seconds_since_reading": reading.silence,
        "waiting_for_pose": sum(intake.waiting for intake in intakes),
        "waiting_for_coverage": sum(intake.visits.waiting for intake in intakes),
    }
    rejected = probe.ingestion.counts + refused
    values |= {f"rejected_{word}": n for word, n in sorted(rejected.items())}
    summary = f"{state} to {waypoint}" if waypoint and state == "driving" else state
    summary += f" ({why})" if why else ""
    problems = [f"no message on {missing} yet"] if missing and state != "left" else []
    if pose.quiet and state != "left" and not probe.is_still:
        problems.append(f"no pose for {pose.silence:.0f} s")
    problems += rejection_problems(rejected)
    level = WARN if problems or state in ("absent", "silent") else OK
    if probe.alarm:
        level, problems = ERROR, [probe.alarm, *problems]
    return level, "; ".join([summary, *problems]), values


def sortie_values(probe: ProbeState) -> dict[str, object]:
    """Return index, remaining budget and charge of the present sortie; {} = no sorties."""
    sortie, left = probe.sortie, probe.remaining
    if not sortie.limited:
        return {}
    values: dict[str, object] = {"sortie": sortie.number}
    if left.metres is not None:
        values["sortie_metres_left"] = left.metres
    if left.seconds is not None:
        values["sortie_seconds_left"] = left.seconds
    return values | ({"charge": sortie.level} if math.isfinite(sortie.level) else {})


def rejection_problems(rejected: Mapping[str, int]) -> list[str]:
    """Return a text with the number of rejections for reasons not in `ASKED_FOR`; [] = none."""
    total = sum(count for word, count in rejected.items() if word not in ASKED_FOR)
    return [f"{total} rejected"] if total else []


MISSION_STATUS = "mission"
"""Name of the diagnostic status that reports the state of the mission."""
_STREAMS = ("reading", "pose", "battery", "twist")
"""Streams that have their own configuration section; all others are further quantities."""
GRACE_SECONDS = 10.0
"""Time after activation before the node warns of a missing topic [s, real time]."""


class Diagnostics:
    """Monitor of the node's inputs; it publishes ``/diagnostics`` every second."""

    def __init__(self, node: GuardedNode, parts: MissionComponents) -> None:
        self._node = node
        self._parts = parts
        self._throttle = Throttle(10.0, time.monotonic)
        self.streams: dict[str, TopicMonitor] = {}
        """Monitor of each subscribed topic, by the topic's role, such as ``probe_1/pose``."""
        self._last: dict[str, tuple[int, float]] = {}
        self._rates: dict[str, float] = {}
        self.goals: Callable[[str], str] | None = None
        """Function that returns the state of a probe's Nav2 goal; None = Nav2 is not used."""
        self.expert: Callable[[], tuple[int, str, dict[str, object]]] | None = None
        """Function that returns the status of the expert; None = there is no expert."""
        self.qos_problems: Counter[str] = Counter()
        self.worker_errors: Counter[str] = Counter()
        self.unstamped: Counter[str] = Counter()
        self._accepted: dict[str, int] = {}
        """Number of accepted readings of each further quantity, by name."""
        self._received_at: dict[str, float] = {}
        self.unit = ""
        """Unit of the planner's lower and upper bounds."""
        self._active_at: float | None = None
        """Time of the activation (monotonic seconds); None = the node is not active."""
        self._publisher = node.own(
            node.create_publisher(DiagnosticArray, "/diagnostics", qos.reliable())
        )
        node.own(node.create_timer(1.0, self.publish))

    def listen(
        self,
        topic: str,
        name: str,
        kind: Any,
        callback: Callable[[Any, float], None],
        profile: QoSProfile,
    ) -> None:
        """Subscribe to a topic and monitor its messages.

        `topic` is the role of the topic, such as ``probe_1/pose``; `name` is the topic's name.
        `callback` takes the serialised message and its arrival (monotonic seconds).
        """
        events = SubscriptionEventCallbacks(
            incompatible_qos=self._node.guarded(self.incompatible(topic, publishing=False))
        )
        stream = self.streams[topic] = TopicMonitor(type_name(kind), callback, float(profile.depth))

        def receive(data: bytes, info: Mapping[str, Any]) -> None:
            stream.on_message(data, received_at(info))

        stream.subscription = self._node.own(
            self._node.create_subscription(
                kind, name, receive, profile, event_callbacks=events, raw=True
            )
        )

    def incompatible(self, topic: str, *, publishing: bool) -> Callable[[Any], None]:
        """Return a callback that reports an incompatible quality of service of `topic`."""

        def report(event: Any) -> None:
            policy, text = qos.incompatible(topic, event, publishing=publishing)
            self.qos_problems[f"{topic}: {policy}"] += 1
            self._node.get_logger().warning(text)

        return report

    def publish(self) -> None:
        """Publish the state and log missing inputs."""
        now = time.monotonic()
        for kind in ("readings", "poses"):
            count = self._parts.mission.inbox.received[kind]
            before, then = self._last.get(kind, (0, now - 1.0))
            if now - then >= 0.5:
                self._rates[kind] = (count - before) / (now - then)
                self._last[kind] = (count, now)
            if count != before:
                self._received_at[kind] = now
        for name in self._parts.mission.loop.quantities:
            count = self._parts.mission.loop.counts[f"accepted_{name}"]
            if count != self._accepted.get(name, 0):
                self._accepted[name], self._received_at[name] = count, now
        for stream in self.streams.values():
            stream.update()
        if not self._node.is_active:
            self._active_at = None
        elif self._active_at is None:
            self._active_at = now
        self._warn_of_missing()
        statuses = [self._mission_status(), self._input_status(), self._planner_status()]
        for probe in self._parts.mission.probes.values():
            if probe.name and probe_topic(probe.name, "pose") in self.streams:
                refused = self._parts.mission.inbox.refused_of(probe.name)
                status = probe_status(probe, self.streams, refused)
                statuses.append(self._status(f"probe {probe.name}", *status))
        if self.expert is not None:
            statuses.append(self._status("expert", *self.expert()))
        message = DiagnosticArray(status=statuses)
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _warn_of_missing(self) -> None:
        mission = self._parts.mission
        if mission.state in ("ended", "paused") or self._active_at is None:
            return
        late = time.monotonic() - self._active_at >= GRACE_SECONDS
        for probe in mission.probes.values():
            if not probe.gone.startswith(LEFT):
                self._warn_of_missing_topic(probe, late=late)
        if late and self._node.now_ns() == 0 and self._throttle.ready("clock"):
            self._node.get_logger().warning(
                "waiting for topic /clock: use_sim_time is set and no time has come yet"
            )

    def _warn_of_missing_topic(self, probe: ProbeState, *, late: bool) -> None:
        """Warn of topics without messages: at once for a wrong type, otherwise only if `late`."""
        pose, reading = probe_topic(probe.name, "pose"), reading_topic(probe, self.streams)
        # Only silence of poses counts, since a sensor may measure seldom.
        wanted = {pose: self.streams[pose].quiet and not probe.is_still, reading: False}
        if probe.resting or (probe.name and not self.streams[pose].count):
            del wanted[reading]  # no reading is needed, or the probe is not switched on
        for topic, quiet in wanted.items():
            stream = self.streams[topic]
            first = topic == reading and probe.needs_reading
            silent = quiet or (not stream.count and (late or self._other_types(stream)))
            if not (silent or (first and late)) or not self._throttle.ready(topic):
                continue
            start = f"start it, or remap the topic (expected {stream.expected})"
            why = stream.why or qos.why_silent(
                self._node, stream.name, stream.expected, start, "set its type"
            )
            if first:
                why = "messages come, none with a finite value" if stream.count else why
                why += "; no waypoint goes out before it (mission.wait_for_reading)"
            what = "a first reading on" if first else stream.what
            since = f" (silent for {stream.silence:.0f} s)" if quiet else ""
            text = f"waiting for {what} {stream.name}{since}: {why}"
            self._node.get_logger().warning(text)

    def _other_types(self, stream: TopicMonitor) -> bool:
        """Return whether a topic has publishers, but none that uses the expected type."""
        if stream.why:
            return False
        found = self._node.get_publishers_info_by_topic(stream.name)
        return bool(found) and stream.expected not in {info.topic_type for info in found}

    def _silence(self, kind: str) -> float:
        """Return the time since the last message of a kind [s]; 0 before the first message."""
        return time.monotonic() - self._received_at.get(kind, time.monotonic())

    def stamped(self, topic: str, stamp_ns: int) -> int:
        """Return a stamp [ns]; replace the stamp 0 by the present time, and count it."""
        if stamp_ns != 0:
            return stamp_ns
        self.unstamped[topic] += 1
        if self.unstamped[topic] == 1:
            self._node.get_logger().warning(
                f"messages of topic {topic} have a header without a stamp; the time of their "
                "arrival is used, so their publisher should better fill it in"
            )
        return self._node.now_ns()

    def _mission_status(self) -> Any:
        mission, run = self._parts.mission, self._parts.recorder.run
        probes = mission.probes
        left = self._smallest_remaining()
        with mission.lock:
            limits = mission.loop.limit_figures()
        values: dict[str, object] = {
            "state": mission.state,
            "reason": mission.reason,
            "stage": mission.decisions.stage,
            "waypoint": ", ".join(self._waypoints()),
            "observed": int(mission.loop.belief.observed.sum()),
            "set_aside": len(mission.loop.set_aside),
            "blocked": len(mission.loop.blocked),
            "shut": len(mission.loop.shut),
            **{f"limits_{key}": number for key, number in limits.items()},
            "readings_left": "unlimited" if left.readings is None else left.readings,
            "metres_left": "unlimited" if left.metres is None else left.metres,
            "seconds_left": "unlimited" if left.seconds is None else left.seconds,
            "promised_error": self._parts.recorder.promised_so_far,
            "explained": self._parts.recorder.explained_so_far,
            "record_failures": self._parts.recorder.failures,
            "run_dir": "" if run is None else str(run.path.absolute()),
        }
        if len(probes) == 1:
            values |= sortie_values(mission.probe)
        if mission.map is not None:
            values |= {
                "map_number": mission.map.places.number,
                "map_places": mission.loop.topology.n,
                "map_closed": len(mission.loop.closed),
                "maps_refused": mission.map.refused.total(),
                "map_problem": mission.map.problem,
            }
        level = WARN if mission.state == "paused" else OK
        summary = mission.state + (f": {mission.reason}" if mission.reason else "")
        if mission.state == "running" and (topics := self._unheard()):
            level, summary = WARN, f"running: waiting for a first reading on {', '.join(topics)}"
        if self.goals is not None:
            goals = [(name, self.goals(name)) for name in probes]
            values["goal"] = ", ".join(f"{n}: {what}" if n else what for n, what in goals)
        if "" not in probes:
            there = len(mission.fleet.present)
            values["probes"] = f"{there} of {len(probes)}"
            if not there and mission.state == "running":
                level, summary = WARN, "running, but no probe takes part"
        if mission.map is not None and mission.map.problem:
            level, summary = WARN, f"{summary}; a new map is not used: {mission.map.problem}"
        if alarms := mission.alarms:
            level, summary = ERROR, "; ".join([summary, *alarms])
        if problem := self._parts.recorder.problem:
            level, summary = ERROR, f"{summary}; records: {problem}"
        return self._status(MISSION_STATUS, level, summary, values)

    def _unheard(self) -> list[str]:
        """Return the topics whose first reading is needed before the first waypoint."""
        waiting = [probe for probe in self._parts.mission.fleet.present if probe.needs_reading]
        streams = [self.streams.get(reading_topic(probe, self.streams)) for probe in waiting]
        return [stream.name for stream in streams if stream is not None]

    def _waypoints(self) -> list[str]:
        """Return the name of each probe's waypoint; in a fleet, the probe's name precedes it."""
        names = self._parts.mission.loop.topology.names
        targets = [(p.name, p.target) for p in self._parts.mission.probes.values()]
        return [f"{n}: {names[t]}" if n else names[t] for n, t in targets if t is not None]

    def _smallest_remaining(self) -> Budget:
        """Return the remaining budget; metres and seconds are minima over the probes."""
        budgets = [probe.remaining_in_all for probe in self._parts.mission.probes.values()]
        metres = [b.metres for b in budgets if b.metres is not None]
        seconds = [b.seconds for b in budgets if b.seconds is not None]
        return Budget(budgets[0].readings, min(metres, default=None), min(seconds, default=None))

    def _input_status(self) -> Any:
        mission = self._parts.mission
        ingestions = [probe.ingestion for probe in mission.probes.values()]
        rejected = mission.rejected
        intakes = [intake for ingestion in ingestions for intake in ingestion.intakes]
        jumps = sum(ingestion.checks.jumps for ingestion in ingestions)
        values: dict[str, object] = {
            "readings_per_second": self._rates.get("readings", 0.0),
            "poses_per_second": self._rates.get("poses", 0.0),
            "readings_received": mission.inbox.received["readings"],
            "poses_received": mission.inbox.received["poses"],
            "readings_accepted": mission.loop.counts["accepted"],
            "readings_late": mission.loop.counts["late"],
            "seconds_since_reading": self._silence("readings"),
            "seconds_since_pose": self._silence("poses"),
            "readings_used": sum(ingestion.pipeline.used for ingestion in ingestions),
            "poses_used": sum(ingestion.poses for ingestion in ingestions),
            "pose_jumps": jumps,
            "pose_covariances_ignored": sum(each.checks.bad_covariances for each in ingestions),
            "pose_orientations_ignored": sum(each.checks.bad_orientations for each in ingestions),
            "reading_delay_seconds": None,
            "inbox": len(mission.inbox),
            "waiting_for_pose": sum(intake.waiting for intake in intakes),
            "waiting_for_coverage": sum(intake.visits.waiting for intake in intakes),
            "averaging": sum(ingestion.averaging for ingestion in ingestions),
            "gated_kept": sum(len(ingestion.pipeline.gate) for ingestion in ingestions),
            "poses_kept": sum(len(ingestion.track) for ingestion in ingestions),
        }
        for name in mission.loop.quantities:
            values[f"{name}_accepted"] = mission.loop.counts[f"accepted_{name}"]
            values[f"seconds_since_{name}"] = self._silence(name)
        values |= {f"rejected_{word}": n for word, n in sorted(rejected.items())}
        values |= {f"dropped_{word}": n for word, n in dict(mission.inbox.dropped).items()}
        values |= {f"unstamped_{word}": n for word, n in self.unstamped.items()}
        values |= {f"qos_{word}": n for word, n in sorted(self.qos_problems.items())}
        values |= {f"failed {word}": n for word, n in dict(self._node.callback_errors).items()}
        values |= {f"failed_thread_{word}": n for word, n in dict(self.worker_errors).items()}
        problems = []
        if not mission.inbox.received["poses"]:
            problems.append("no pose yet")
        elif (silence := self._silence("poses")) > qos.SILENCE_SECONDS and not all(
            probe.is_still for probe in mission.probes.values()
        ):
            problems.append(f"no pose for {silence:.0f} s")
        if not mission.inbox.received["readings"]:
            problems.append("no reading yet")
        elif mission.loop.counts["accepted"]:
            driving = (q for q, each in mission.loop.quantities.items() if not each.sampled)
            problems += [f"no reading of {q} yet" for q in driving if q not in self._received_at]
        for topic, stream in self.streams.items():
            if qos.QUEUE_SECONDS * stream.rate > 1.2 * stream.depth:
                probe, _, kind = topic.rpartition("/")
                whose = f" of {probe}" if probe else ""
                name = mission.loop.name if kind == "reading" else ""
                name = name or ("" if kind in _STREAMS else kind)
                section = f"readings.{name}" if name else kind
                problems.append(
                    f"{name or f'{kind}s'}{whose} come {stream.rate:.0f} times a second and "
                    f"{stream.depth:.0f} are kept: set {section}.rate to what is expected"
                )
        for one, intake in ((p, i) for p in mission.probes.values() for i in p.ingestion.intakes):
            if (estimate := intake.lag.estimate) is not None:
                whose = f"{one.name}: " if one.name else ""
                quantity = intake.quantity or mission.loop.name
                section = f"readings.{quantity}" if quantity else "reading"
                problems.append(whose + advice(estimate, intake.delay, section))
                if not intake.quantity:
                    values["reading_delay_seconds"] = intake.delay + estimate.seconds
        problems += qos.pose_problems(self.streams, jumps)
        problems += rejection_problems(rejected)
        if self.qos_problems:
            problems.append("incompatible quality of service")
        if self._node.callback_errors or self.worker_errors:
            problems.append("errors, see the log")
        return self._status("inputs", WARN if problems else OK, ", ".join(problems) or "ok", values)

    def _planner_status(self) -> Any:
        mission = self._parts.mission
        plan = mission.decisions.last_plan
        values: dict[str, object] = {"planning": mission.decisions.running}
        for name, latency in latencies(mission).items():
            values |= {
                f"{name}_{key}": "none yet" if value is None else value
                for key, value in latency.items()
            }
        if plan is None:
            return self._status("planner", OK, "no decision yet", values)
        gap = f"{plan.gap:.3g}{f' {self.unit}' if self.unit else ''}"
        values |= {
            "lower": shown(plan.lower, self.unit),
            "upper": shown(plan.upper, self.unit),
            "gap": shown(plan.gap, self.unit),
            "seconds": plan.seconds,
            "expanded": plan.expanded,
            "horizon": plan.horizon,
            "deadline_hit": plan.deadline_hit,
        }
        return self._status("planner", OK, f"gap {gap} in {plan.seconds:.3f} s", values)

    def _status(self, name: str, level: int, summary: str, values: dict[str, object]) -> Any:
        full = self._node.get_fully_qualified_name().lstrip("/")
        return outputs.diagnostic_status(f"{full}: {name}", full, level, summary, values)
