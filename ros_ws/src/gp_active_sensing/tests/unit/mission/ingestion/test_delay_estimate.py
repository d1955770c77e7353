from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.ingestion import delay_estimate as lag
from gp_active_sensing.mission.log_messages import delays_of
from gp_active_sensing.mission.stream_config import PoseConfig, ReadingConfig
from gp_active_sensing.topology import MapConfig
from gp_active_sensing.types import FloatArray
from tests.cases import for_each
from tests.unit.mission.worlds import SECOND, Rig, grid

PERIOD = 0.1


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


def mission(late: float, delay: float = 0.0) -> Rig:
    """Drive 200 s over a grid; readings come stamped `late` s too late."""
    rng = np.random.default_rng(7)
    rig = Rig(grid(3, 2), taking={"window": None, "delay": delay})
    for i in range(2000):
        t = 1.0 + PERIOD * i
        rig.seconds = t
        rig.pose(t, *turning(t))
        if t >= late:
            rig.reading(t, field(*turning(t - late)) + 0.1 * float(rng.standard_normal()))
        rig.step(t)
    return rig


Way = Callable[[float], tuple[float, float]]


def stepping(t: float) -> tuple[float, float]:
    """Along a line, with a short stop and a long one by turns."""
    rounds, rest = divmod(t, 7.0)
    return 2.0 * (3.0 * rounds + min(rest, 2.0) + min(max(rest - 3.0, 0.0), 1.0)), 0.0


def watched(
    way: Way, late: float, seconds: float, seed: int = 0, noise: float = 0.1
) -> lag.DelayMonitor:
    """Return what is known after driving: position at t, reading of it stamped t + late."""
    rng = np.random.default_rng([seed, 11])
    watch = lag.DelayMonitor(lambda ns: way(1e-9 * ns) if ns >= 0 else None)
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


@pytest.mark.slow
@for_each("way", [turning, stepping])
@for_each("late", [0.6, 1.5, 3.1])
def test_a_delay_is_found_where_the_probe_turns_or_stops(way: Way, late: float) -> None:
    estimate = watched(way, late, 210.0).estimate
    assert estimate.seconds == pytest.approx(late, abs=0.2)
    assert abs(estimate.seconds - late) < 5.0 * estimate.error + 0.05
    assert estimate.samples >= 3 * lag.FULL


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 6))]
)
def test_without_a_delay_nothing_is_said(seed: int) -> None:
    for noise in (0.01, 0.5):
        assert watched(turning, 0.0, 210.0, seed, noise).estimate is None


@for_each("ahead", [40, 86_400])
def test_one_reading_of_a_wrong_clock_does_not_keep_the_others_waiting(ahead: int) -> None:
    watch = lag.DelayMonitor(lambda ns: turning(1e-9 * ns) if ns >= 0 else None)
    for second in range(400):
        watch.moved(second * SECOND)
        if second in (0, 100):
            watch.read((second + ahead) * SECOND, 1.0)
        watch.read(second * SECOND, float(second % 7))
        while watch.busy:
            watch.work()
    assert watch.evidence.samples > 300


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
    found = lag._evidence(positions, one, 2.0)[0] - lag._evidence(positions, other, 2.0)[0]
    assert found == pytest.approx(exact, rel=2e-3)


def test_a_delay_is_said_with_the_number_to_set(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        rig = mission(1.5)
    said = [r.getMessage() for r in caplog.records if "reading.delay" in r.getMessage()]
    assert said
    number = re.search(r"set reading\.delay: ([0-9.]+) ", said[-1])
    assert number is not None
    assert float(number[1]) == pytest.approx(1.5, abs=0.15)
    [found] = delays_of([("", rig.ingestion.lag, rig.ingestion.delay)])
    assert found["seconds"] == pytest.approx(1.5, abs=0.15)


def test_with_the_delay_set_each_reading_is_where_it_was_taken() -> None:
    rig = mission(1.5, delay=1.5)
    assert rig.ingestion.lag.estimate is None
    read = [event for event in rig.events if event["event"] == "reading"]
    assert len(read) > 200
    for event in read:
        assert event["position"] == pytest.approx(turning(1e-9 * event["stamp_ns"]), abs=1e-6)
        assert event["value"] == pytest.approx(field(*event["position"]), abs=0.6)


def test_a_delay_beyond_what_is_kept_of_the_poses_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"less than pose\.history"):
        ActiveSensingConfig(
            MapConfig("grid", columns=2, rows=2),
            reading=ReadingConfig(delay=20.0),
            pose=PoseConfig(history=10.0),
        )


def peak(at: float, width: float = 0.1) -> FloatArray:
    return np.asarray(-0.5 * ((lag.CANDIDATES - at) / width) ** 2)


def told(*delays: float, width: float = 0.1) -> tuple[float, float, float]:
    return lag.common_delay([lag.log_likelihood(peak(delay, width)) for delay in delays])


def test_the_delay_of_blocks_that_agree_is_theirs() -> None:
    for delay in (-0.6, 0.4, 1.5, 3.17):
        seconds, error, evidence = told(delay, delay, delay, delay)
        assert seconds == pytest.approx(delay, abs=0.02)
        assert error < 0.1
        assert evidence > 5.0


def test_blocks_that_are_sure_and_differ_tell_no_delay() -> None:
    """The errors of a GPS receiver last: a block each, and each of them sure."""
    seconds, error, evidence = told(0.9, -0.6, 0.4, -0.5, 0.6, width=0.02)
    assert evidence < lag.EVIDENCE
    assert abs(seconds) < lag.ERRORS * error


def test_what_blocks_say_is_the_double_integral(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of blocks that are normal, whose integrals are known."""
    monkeypatch.setattr(lag, "SCATTERS", (0.3, 0.6))
    width, delays = 0.4, (1.2, 2.1)

    def exact(tau: float) -> float:
        spread = [math.hypot(width, s) for s in (0.3, 0.6)]
        return sum(
            math.prod(math.exp(-0.5 * ((d - tau) / w) ** 2) / w for d in delays) for w in spread
        )

    evidence = told(*delays, width=width)[2]
    best = max(exact(tau) for tau in np.arange(1.0, 2.5, 0.05).tolist())
    assert evidence == pytest.approx(math.log(best / exact(0.0)), abs=1e-3)


def test_a_delay_that_begins_late_is_found_and_what_was_before_forgotten() -> None:
    evidence = lag.DelayEvidence()

    def look(delay: float) -> None:
        evidence._likelihoods.append(lag.log_likelihood(peak(delay)))
        evidence.samples += lag.FULL

    for _ in range(3 * lag.KEPT):
        look(0.0)
    assert evidence.estimate() is None
    for _ in range(lag.KEPT):
        look(1.5)
    found = evidence.estimate()
    assert found.seconds == pytest.approx(1.5, abs=0.05)
    assert found.samples == lag.KEPT * lag.FULL
