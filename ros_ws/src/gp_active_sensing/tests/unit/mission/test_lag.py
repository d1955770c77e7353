"""By how much are the stamps of the readings too late?"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission import lag
from gp_active_sensing.mission.delays import advice, delays_of
from gp_active_sensing.mission.lag import (
    CANDIDATES,
    FULL,
    STEP,
    Block,
    DelayEstimate,
    DelayEvidence,
    LagWatch,
    log_likelihood,
)
from gp_active_sensing.mission.live import LIVE
from gp_active_sensing.mission.settings import ActiveSensingConfig
from gp_active_sensing.mission.stream_settings import PoseConfig, ReadingConfig
from gp_active_sensing.replay.delay import watches_of
from gp_active_sensing.topology import MapConfig
from tests.unit.mission.worlds import SECOND, Rig, grid

PERIOD = 0.1
Way = Callable[[float], tuple[float, float]]


def field(x: float, y: float) -> float:
    return 20.0 + 2.0 * math.sin(x / 9.0 + 0.3) * math.cos(y / 7.0) + 0.5 * math.sin((x + y) / 4.0)


def turning(t: float, speed: float = 2.0) -> tuple[float, float]:
    """Go round a square of 12 m, and round another one across it, for ever."""
    corners = [(0.0, 0.0), (12.0, 0.0), (12.0, 12.0), (0.0, 12.0), (6.0, 6.0), (18.0, 6.0)]
    lengths = [math.dist(a, b) for a, b in zip(corners, corners[1:] + corners[:1], strict=True)]
    left = (speed * t) % sum(lengths)
    for (x, y), (a, b), length in zip(corners, corners[1:] + corners[:1], lengths, strict=True):
        if left <= length:
            return x + (a - x) * left / length, y + (b - y) * left / length
        left -= length
    return corners[0]


def straight(t: float) -> tuple[float, float]:
    return 0.5 * t, 0.0


def stepping(t: float) -> tuple[float, float]:
    """Along a line, with a short stop and a long one by turns."""
    rounds, rest = divmod(t, 7.0)
    return 2.0 * (3.0 * rounds + min(rest, 2.0) + min(max(rest - 3.0, 0.0), 1.0)), 0.0


def watched(way: Way, late: float, seconds: float, seed: int = 0, noise: float = 0.1) -> LagWatch:
    """Return what is known after driving: position at t, reading of it stamped t + late."""
    rng = np.random.default_rng([seed, 11])
    watch = LagWatch(lambda ns: way(1e-9 * ns) if ns >= 0 else None)
    for i in range(round(seconds / PERIOD)):
        t = PERIOD * i
        watch.moved(round(t * SECOND))
        if t >= late:
            value = field(*way(t - late)) + noise * float(rng.standard_normal())
            watch.read(round(t * SECOND), value)
        for _ in range(8):
            watch.work()
    while watch.busy:
        watch.work()
    return watch


@pytest.mark.parametrize("way", [turning, stepping])
@pytest.mark.parametrize("late", [0.6, 1.5, 3.1])
def test_a_delay_is_found_where_the_probe_turns_or_stops(way: Way, late: float) -> None:
    estimate = watched(way, late, 128.0).estimate
    assert estimate is not None
    assert estimate.seconds == pytest.approx(late, abs=0.2)
    assert abs(estimate.seconds - late) < 5.0 * estimate.error + 0.05
    assert estimate.samples >= 2 * STEP


@pytest.mark.parametrize("seed", range(6))
def test_without_a_delay_nothing_is_said(seed: int) -> None:
    for noise in (0.01, 0.5):
        assert watched(turning, 0.0, 130.0, seed, noise).estimate is None


@pytest.mark.parametrize("late", [0.0, 1.5])
def test_straight_on_at_one_speed_nobody_can_tell(late: float) -> None:
    assert watched(straight, late, 160.0).estimate is None


def test_noise_alone_tells_nothing() -> None:
    rng = np.random.default_rng(5)
    watch = LagWatch(lambda ns: turning(1e-9 * ns) if ns >= 0 else None)
    for i in range(1600):
        watch.moved(round(PERIOD * i * SECOND))
        watch.read(round(PERIOD * i * SECOND), float(rng.standard_normal()))
        watch.work()
    assert watch.evidence.samples > FULL
    assert watch.estimate is None


def test_a_few_readings_are_not_enough() -> None:
    watch = watched(turning, 1.5, 40.0)
    assert watch.evidence.samples == STEP
    assert watch.estimate is None


def test_a_probe_that_stands_says_nothing() -> None:
    watch = watched(lambda t: (0.0, 0.0), 0.0, 200.0)
    assert watch.evidence.samples == 0


def test_the_likelihood_knows_neither_unit_nor_zero_nor_order() -> None:
    rng = np.random.default_rng(2)
    positions, values = rng.uniform(0.0, 5.0, (6, 2)), rng.normal(3.0, 2.0, 6)
    plain = log_likelihood(positions, values, 5.0)
    other = log_likelihood(positions, 10.0 * (values + 7.0), 5.0)
    assert other == pytest.approx(plain - 5 * math.log(10.0))
    assert log_likelihood(positions[::-1], values[::-1], 5.0) == pytest.approx(plain)
    assert log_likelihood(positions[[3, 1, 2, 0, 5, 4]], values, 5.0) != pytest.approx(plain)


def test_the_likelihood_is_that_of_the_integral(monkeypatch: pytest.MonkeyPatch) -> None:
    """For one candidate, against mean and scale integrated out by sums over a grid of both."""
    monkeypatch.setattr(lag, "_LENGTHS", (0.5,))
    monkeypatch.setattr(lag, "_NOISES", (0.1,))
    rng = np.random.default_rng(4)
    positions = rng.uniform(0.0, 4.0, (5, 2))
    scaled = math.sqrt(3.0) / 2.0 * np.hypot(*(positions[:, None] - positions).transpose(2, 0, 1))
    K = (1.0 + scaled) * np.exp(-scaled) + 0.1 * np.eye(5)
    means, logs = np.linspace(-60.0, 60.0, 1201), np.linspace(-6.0, 9.0, 301)

    def by_sums(values: np.ndarray) -> float:
        apart = values[None] - means[:, None]
        Q = (apart * np.linalg.solve(K, apart.T).T).sum(axis=1)
        density = np.exp(-0.5 * Q[:, None] / np.exp(logs) - 2.5 * logs)
        return math.log(float(density.sum()))

    one, other = rng.normal(0.0, 1.0, 5), rng.normal(1.0, 3.0, 5)
    exact = by_sums(one) - by_sums(other)
    found = log_likelihood(positions, one, 4.0) - log_likelihood(positions, other, 4.0)
    assert found == pytest.approx(exact, rel=2e-3)


def block(rng: np.random.Generator, size: int) -> Block:
    return Block(rng.uniform(0.0, 9.0, (len(CANDIDATES), size, 2)), rng.normal(size=size))


def test_blocks_are_looked_at_a_little_at_a_time() -> None:
    evidence = DelayEvidence()
    assert not evidence.work()
    evidence.begin(block(np.random.default_rng(3), 20))
    done = [evidence.work() for _ in range(6 * len(CANDIDATES))]
    assert done == [False] * (len(done) - 1) + [True]
    assert (evidence.samples, evidence.busy) == (20, False)


def test_a_block_that_grows_counts_once_and_full_ones_add_up() -> None:
    rng = np.random.default_rng(4)
    whole, other = block(rng, FULL), block(rng, 30)
    part = Block(whole.positions[:, :60], whole.values[:60])
    profiles = []
    for blocks in ([part, whole, other], [whole], [other]):
        evidence = DelayEvidence()
        for one in blocks:
            evidence.begin(one)
            while evidence.busy:
                evidence.work()
        profiles.append(evidence._full + evidence._last)
        assert evidence.samples == sum(len(one.values) for one in blocks if one is not part)
    np.testing.assert_allclose(profiles[0], profiles[1] + profiles[2])
    exact = [log_likelihood(p, other.values, other.reach) for p in other.positions]
    np.testing.assert_allclose(profiles[2], np.array(exact) - exact[4])


def test_what_to_do_is_said_in_words() -> None:
    said = advice(DelayEstimate(1.04, 0.02, 90.0, 100), delay=0.5)
    assert said.endswith("about 1.5 s older than their stamps: set reading.delay: 1.5")
    assert "5.0 s or more" in advice(DelayEstimate(5.0, 0.25, 90.0, 100))
    assert "correct the stamps of the poses" in advice(DelayEstimate(-0.8, 0.1, 90.0, 100))


# -- in a mission ---------------------------------------------------------------------------------


def mission(late: float, delay: float = 0.0) -> Rig:
    """Drive 130 s over a grid; readings come stamped `late` s too late."""
    rng = np.random.default_rng(7)
    rig = Rig(grid(3, 2), taking={"window": None, "delay": delay})
    for i in range(1300):
        t = 1.0 + PERIOD * i
        rig.seconds = t
        rig.pose(t, *turning(t))
        if t >= late:
            rig.reading(t, field(*turning(t - late)) + 0.1 * float(rng.standard_normal()))
        rig.step(t)
    return rig


def test_a_delay_is_said_once_with_the_number_to_set(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        rig = mission(1.5)
    said = [r.getMessage() for r in caplog.records if "reading.delay" in r.getMessage()]
    assert len(said) == 1
    number = re.search(r"set reading\.delay: ([0-9.]+) ", said[0])
    assert number is not None
    assert float(number[1]) == pytest.approx(1.5, abs=0.15)
    [found] = delays_of([("", rig.intake.lag, rig.intake.delay)])
    assert found["seconds"] == pytest.approx(1.5, abs=0.15)


def test_with_the_delay_set_each_reading_is_where_it_was_taken() -> None:
    rig = mission(1.5, delay=1.5)
    assert rig.intake.lag.estimate is None
    read = [event for event in rig.events if event["event"] == "reading"]
    assert len(read) > 200
    for event in read:
        assert event["position"] == pytest.approx(turning(1e-9 * event["stamp_ns"]), abs=1e-6)
        assert event["value"] == pytest.approx(field(*event["position"]), abs=0.6)


@pytest.mark.parametrize(("late", "delay"), [(1.5, 0.0), (1.5, 1.5), (0.0, 0.0)])
def test_the_journal_tells_the_delay_too(late: float, delay: float) -> None:
    rig = mission(late, delay)
    events = json.loads(json.dumps(rig.events))
    estimate = watches_of(events)[""].estimate
    if late == delay:
        assert estimate is None
    else:
        assert estimate is not None
        assert estimate.seconds == pytest.approx(late - delay, abs=0.15)


def test_a_journal_without_positions_tells_nothing(tmp_path: Path) -> None:
    assert watches_of([{"event": "reading", "stamp_ns": 5, "value": 1.0, "position": None}]) == {}


def test_a_delay_beyond_what_is_kept_of_the_poses_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"less than pose\.history"):
        ActiveSensingConfig(
            MapConfig("grid", columns=2, rows=2),
            reading=ReadingConfig(delay=20.0),
            pose=PoseConfig(history=10.0),
        )


def test_delay_and_settle_may_change_while_the_mission_runs() -> None:
    assert {"reading.delay", "mission.settle"} <= set(LIVE)
