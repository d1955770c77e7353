"""Compare the ingestion of seeded streams with the record; see `tests.recorded`.

Times and distances lie on a coarse grid, so that they meet every threshold exactly.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.mission.inbox import Envelope, RawReading
from gp_active_sensing.mission.ingestion import delay_estimate as delays
from gp_active_sensing.mission.ingestion.backlog import Backlog, DuplicateFilter
from gp_active_sensing.mission.ingestion.odometer import Odometer
from gp_active_sensing.mission.ingestion.stays import NoiseLevel, Stays, noise_of
from gp_active_sensing.mission.ingestion.visits import (
    AveragingWindow,
    ClosestPoint,
    PendingReading,
    SegmentCoverage,
    SettlingTimer,
)
from gp_active_sensing.mission.matching import MapMatcher
from gp_active_sensing.mission.poses import Headings, Pose, PoseTrack, mounted
from gp_active_sensing.records.event_lines import to_line
from gp_active_sensing.records.events import ReadingGated, ReadingUsed
from gp_active_sensing.topology import Topology, make_grid
from gp_active_sensing.types import Reading
from tests.cases import for_each
from tests.recorded import check_recorded
from tests.unit.mission.worlds import SECOND, Rig, chain, grid, placed
from tests.unit.planning.routes.test_recorded import city

RECORD = Path(__file__).with_name("recorded.json")
WORLDS: dict[str, Topology] = {
    "grid": grid(4, 3),
    "roads": chain(),
    "layers": make_grid(3, 3, 10.0, heights=[0.0, -2.0, -4.0]),
}
TAKING: tuple[dict[str, Any], ...] = (
    {"gate": 3.0, "gate_places": 2, "window": None},
    {"window": 1.0, "delay": 0.5},
    {"window": None, "mount": [1.5, -0.5], "max_ahead": 2.0},
    {"window": None, "delay": 0.25, "catch_up": True, "noise_variance": 0.2},
)


def stream(rig: Rig, rng: np.random.Generator, where: Any) -> None:
    """Let a probe wander for a minute, with all that a localisation and a sensor may do."""
    x, y, z = where[0]
    goal = where[0]
    for k in range(240):
        t = round(0.25 * k * SECOND) + SECOND
        rig.seconds, came = 1e-9 * t, []
        if k % 24 == 0:
            goal = where[int(rng.integers(len(where)))]
        if k % 24 < 16:  # then it stands
            way = math.dist((x, y, z), goal)
            part = min(1.0, 1.5 / way) if way else 0.0
            x, y, z = (a + part * (b - a) for a, b in zip((x, y, z), goal, strict=True))
        kind, frame, stamp_ns, px = rng.random(), "map", t, x + 0.05 * rng.standard_normal()
        if kind < 0.04:
            px += 60.0
        elif kind < 0.06:
            frame = "odom"
        elif kind < 0.12:
            stamp_ns -= SECOND
        elif kind < 0.14:
            stamp_ns += 5 * SECOND
        heading = math.atan2(goal[1] - y, goal[0] - x) if rng.random() < 0.7 else math.nan
        variances = [float(v) for v in rng.choice([0.0, 0.0, 0.04, 0.5, -1.0], 3)]
        pose = Pose(stamp_ns, frame, px, y, heading, variances[0], abs(variances[1]), z,
                    variances[2], float(rng.choice([math.nan, 0.0, 1.5])))  # fmt: skip
        if rng.random() < 0.85:
            came.append(Envelope(pose, rig.seconds))
        for _ in range(int(rng.integers(0, 3))):
            value = 10.0 + math.sin(0.2 * x) + 0.05 * rng.standard_normal()
            value += float(rng.choice([0.0, 9.0, math.nan], p=[0.93, 0.05, 0.02]))
            late = int(rng.choice([0, 0, SECOND // 4, 6 * SECOND]))
            variance = [None, 0.01, -1.0][int(rng.choice(3, p=[0.6, 0.37, 0.03]))]
            mount = (0.5, 0.0) if rng.random() < 0.1 else None
            raw = RawReading(t - late, float(value), variance, mount=mount)
            came.append(Envelope(raw, rig.seconds))
        if k == 120:
            rig.ingestion.accept_gated()
        if k == 180:
            rig.ingestion.restart_clock()
        rig.loop.clock_ns = t
        rig.loop.advance(t)
        rig.ingestion.process(came)
    rig.ingestion.stop_waiting()


@for_each("name", WORLDS)
def test_streams(name: str) -> None:
    topology, found = WORLDS[name], []
    points = topology.points
    where = [(*p, 0.0)[:3] for p in points[:: 1 + topology.n // 9].tolist()]
    for number, taking in enumerate(TAKING):
        rig = Rig(topology, taking=dict(taking), max_age=0.5, pose_wait=0.25 * number)
        rig.ingestion.dwelling.seconds, rig.ingestion.dwelling.radius = [0.0, 0.5][number % 2], 3.0
        stream(rig, np.random.default_rng([5, number]), where)
        ingestion, belief = rig.ingestion, rig.loop.belief
        keys = ("location", "value", "noise_variance", "stay", "off", "count", "position_variance")
        found.append(
            {
                "events": [[e["event"], *(e.get(k) for k in keys if k in e)] for e in rig.events],
                "rejected": dict(sorted(ingestion.rejected.items())),
                "checks": [ingestion.checks.jumps, ingestion.checks.bad_covariances],
                "driven": [ingestion.metres, ingestion.poses, ingestion.pipeline.used],
                "odometer": ingestion.odometer.memory,
                "belief": [belief.weights, *belief.predict()],
            }
        )
    check_recorded(RECORD, f"streams {name}", found)


@for_each("name", [*WORLDS, "city"])
def test_matching(name: str) -> None:
    topology = city() if name == "city" else WORLDS[name]
    matcher, found = MapMatcher(topology, [None, 4.0][name == "grid"]), []
    rng, high = np.random.default_rng(6), topology.points.shape[1] == 3
    low, top = topology.positions.min(axis=0) - 2.0, topology.positions.max(axis=0) + 2.0
    exact = topology.positions[:4] + np.array([[4.0, 0.0], [0.0, 4.0], [0.0, 0.0], [0.0, -30.0]])
    for k, (x, y) in enumerate([*exact, *rng.uniform(low, top, (60, 2))]):
        heading = [math.nan, *np.arange(0.0, 6.0, 0.7)][k % 10]
        z = float(rng.uniform(-5.0, 1.0)) if high else math.nan
        place = k % topology.n
        expected = [(), (place,), (place, (k + 1) % topology.n)][k % 3]
        found.append([matcher.match(x, y, heading, expected, z), matcher.nearest(x, y, z)])
        found.append([matcher.apart(place, x, y, z), matcher.driven(x, y, z), matcher.near(place)])
    for bad in ((math.nan, 0.0), (0.0, math.inf)):
        assert matcher.match(*bad, z=0.0) is None
    facts = [matcher.spacing, matcher.stretch, matcher.layers, matcher.rise, matcher.extent]
    check_recorded(RECORD, f"matching {name}", [*facts, matcher.snap_distance, *found])


def test_poses() -> None:
    found = []
    for seed in range(4):
        rng = np.random.default_rng([7, seed])
        track = PoseTrack(1.0, 5.0, capacity=[50_000, 8][seed % 2])
        headings, before = Headings(), None
        for k in range(90):
            stamp = (k - int(rng.choice([0, 0, 0, 1, 3, 5, 6, 9]))) * SECOND // 2 + 10 * SECOND
            x, y, heading, speed = rng.uniform(-3.0, 3.0, 4).tolist()
            pose = Pose(stamp, "map", x, y, heading, abs(x), abs(y), speed, 0.25)
            if k % 4 == 1:
                pose = headings.filled(dataclasses.replace(pose, heading=math.nan), before)
            added = track.add(pose, [None, (k + 20) * SECOND // 2][seed // 2])
            before = track.newest
            if k % 29 == 28:
                track.forget_after(stamp - SECOND)
            if k % 23 == 22:
                track.cut()
            times = [stamp - SECOND // 4, stamp + SECOND, stamp + SECOND // 2 * (k % 5 - 2)]
            seen = [track.at(time) for time in times]
            found.append([added, len(track), [track.expects_pose(time) for time in times]])
            found.append([p and [p.x, p.y, p.heading, p.variance, p.z_variance] for p in seen])
            mount = [(0.0, 0.0), (1.0, 0.5), (0.0, 2.0, -1.0)][k % 3]
            sensor = mounted(pose, mount)
            found.append([sensor.x, sensor.y, sensor.z, sensor.variance])
    check_recorded(RECORD, "poses", found)


def pending(rng: np.random.Generator, k: int, places: int = 3) -> PendingReading:
    stamp = (k + int(rng.integers(-3, 3))) * SECOND // 4 + 20 * SECOND
    variance = [None, 0.5, 0.1][k % 3 if k % 2 else 1]
    reading = Reading(
        stamp, int(rng.integers(places)), float(rng.normal(5.0, 1.0)), variance,
        position=(float(rng.uniform(-2.0, 2.0)), 0.5), position_variance=0.1 * (k % 2),
        height_variance=0.2 * (k % 3),
    )  # fmt: skip
    return PendingReading(reading, 0.25 * k)


def kept(held: list[PendingReading]) -> Any:
    return [[h.reading, h.count, h.received, h.first_ns, h.taken_back] for h in held]


def test_visits() -> None:
    found: list[Any] = []
    for seed in range(3):
        rng = np.random.default_rng([8, seed])
        coverage = SegmentCoverage(0.5, lambda a, b: b == (a + 1) % 3)
        window, nearing = AveragingWindow([1.0, 0.0, 2.5][seed]), ClosestPoint(10.0)
        settling = SettlingTimer(1.0, 2.0)
        for k in range(120):
            now, here = k * SECOND // 4 + 20 * SECOND, k // 7 % 3
            if k % 40 > 30:
                now += 6 * SECOND
            held, apart = pending(rng, k), float(rng.choice([0.0, 1.0, 1.2, 2.0, 2.5, 8.0]))
            found.append(kept(coverage.drive(here, k % 7 / 8, now, 0.25 * k)))
            place = held.reading.location
            found.append(kept(coverage.add(place, PendingReading(held.reading, 0.25 * k))))
            found.append([coverage.waiting, len(coverage.left), len(window), len(nearing)])
            found.append(kept(window.add(held) + window.pass_time(now - 3 * SECOND, here)))
            found.append(kept(nearing.add(place, held)))
            found.append(kept(nearing.drive([here, None][k % 11 == 10], apart, now, 0.25 * k)))
            found.append(kept(nearing.release_at_stop(now + k % 5 * SECOND, 0.25 * k)))
            settling.drive([here, None][k % 13 == 12], apart, now)
            found.append([settling.has_settled(p, now - k % 3 * SECOND // 2) for p in range(3)])
        found.append([kept(nearing.pop_all()), kept(window.close()), kept(coverage.left)])
    check_recorded(RECORD, "visits", found)


def test_stays() -> None:
    found: list[Any] = []
    for seed, (near, parts, longest) in enumerate(product((math.inf, 2.0), (1.0, 4.0), (6.0, 1e9))):
        rng = np.random.default_rng([9, seed])
        point = (0.5, 0.0) if seed % 2 else (0.5, 0.0, -1.0)
        noise = [lambda r: 0.09, lambda r: 0.0, lambda r: None][seed % 3]
        ours = Stays(noise, lambda p, at=point: at, lambda n=longest: n, parts=lambda n=parts: n)
        ours.near, ours.stretch = lambda place, n=near: n, 2.0
        for k in range(70):
            reading = pending(rng, 2 * k, 2).reading
            if seed % 2 == 0:
                reading = dataclasses.replace(reading, position=(*reading.position, -1.2))
            told = ours.add(placed(reading), begins=k % 17 == 16)
            before = told.before and told.before.reading
            found.append([told.count, told.reading.value, told.reading.noise_variance])
            found.append([told.reading.off, told.reading.stamp_ns, before and before.value])
        found.append([ours.noise, len(ours), ours.widened(placed(reading)).noise_variance])
    counts = (1.0, 1.5, 2.0, 10.0, 400.0)
    found += [noise_of(n, s, v) for n in counts for s in (0.0, 0.1, 4.0) for v in (0.0, 0.2, 3.0)]
    level = NoiseLevel()
    for k, value in enumerate(np.random.default_rng(10).normal(0.0, 0.3, 60).tolist()):
        level.add(value + (50.0 if k == 25 else 0.0))
        found.append(level.variance)
    check_recorded(RECORD, "stays", found)


def test_delays_and_ways() -> None:
    found: list[Any] = []
    for seed in range(3):
        rng = np.random.default_rng([11, seed])
        peak = [0.0, 1.3, 2.2][seed]
        blocks = [-8.0 * (delays.CANDIDATES - peak) ** 2 + rng.normal(0.0, 1.0, 25) for _ in "abcd"]
        said = [delays.log_likelihood(block) for block in blocks]
        found.append([delays.common_delay(said), said[0][:, ::20]])
        evidence = delays.DelayEvidence()
        positions = rng.uniform(0.0, 9.0, (25, 6, 2))
        evidence.begin(delays.Block(positions, rng.normal(5.0, 1.0, 6)))
        while not evidence.work():
            pass
        found.append([evidence._likelihoods[0][:, ::20], evidence.samples, evidence.estimate()])
        meter = Odometer(2.0, lambda x, y, z: math.hypot(x, y))
        for k in range(150):
            t = 0.5 * k + (3.0 if k > 90 else 0.0)
            x = 0.8 * max(0.0, min(t, 30.0) - 10.0) + [0.0, 0.1, 0.3][seed] * rng.standard_normal()
            variance, speed = [0.0, 0.3][k // 40 % 2], [math.nan, 0.01, 0.8][k // 50]
            pose = Pose(round(t * SECOND), "map", x, 0.2 * seed, math.nan, variance, speed=speed)
            meter.add(pose)
            if k % 15 == 14:
                found.append([meter.metres, meter.sigma, meter.memory])
    monitor = delays.DelayMonitor(lambda ns: (3e-9 * ns % 8.0, 1e-9 * ns % 5.0) if ns > 0 else None)
    for k in range(260):
        monitor.read(k * SECOND // 4, float(np.sin(0.1 * k)))
        monitor.moved(k * SECOND // 4 - SECOND // 2)
        if k % 60 == 59:
            found.append([len(monitor._pending), len(monitor._values), len(monitor._ready)])
    check_recorded(RECORD, "delays", found)


def test_what_was_missed() -> None:
    found: list[Any] = []
    for seed in range(4):
        rng, now = np.random.default_rng([12, seed]), [0.0]
        backlog = Backlog(lambda now=now: now[0], wanted=seed < 3)
        known = DuplicateFilter(5)
        for k in range(40):
            now[0] += 0.5
            stamp = int(rng.integers(0, 20)) * SECOND
            reading = Reading(stamp, 0, float(k % 3))
            if k < 20:
                first = stamp - SECOND if k % 5 == 4 else None
                known.note(ReadingUsed(reading=reading, first_ns=first) if k % 2 else
                           ReadingGated(reading=reading, off=4.0))  # fmt: skip
            found.append([known.discard(stamp + SECOND * (k % 2), float(k % 3)), len(known)])
            came = [
                Envelope(RawReading(stamp + n * SECOND, 0.0, None), now[0])
                for n in range(int(rng.integers(0, 3)))
                if k < 12 or seed == 2
            ]
            passed = backlog.pass_on(came, [None, 10 * SECOND][k > 1], 2)
            found.append([[e.what.stamp_ns // SECOND for e in passed], backlog.waiting])
            found.append([backlog.active, backlog.releasing])
        found.append([e.what.stamp_ns for e in backlog.release()])
    event = to_line(ReadingGated(reading=Reading(1, 0, 2.0), off=4.0))
    check_recorded(RECORD, "missed", [*found, event])
