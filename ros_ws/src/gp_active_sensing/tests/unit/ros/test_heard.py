"""Rates of topics, and the parameters that they ask for."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig, MissionConfig
from gp_active_sensing.mission.stream_config import PoseConfig, ReadingConfig
from gp_active_sensing.ros.heard import Needs, Received, pace_of, pose_needs, reading_needs
from tests.cases import case


def regular(period: float, *, pace: float = 1.0, silent: float = 0.0) -> Received:
    count = max(2, 1 + round(1.0 / period))
    return Received("/t", [], [period * i for i in range(count)], silent, pace)


def of_poses(*heard: Received) -> Needs:
    return pose_needs(PoseConfig(), heard)


def of_readings(*heard: Received) -> Needs:
    return reading_needs(ReadingConfig(), MissionConfig(), heard)


def test_rates_in_words() -> None:
    assert regular(0.05).in_words == "20 Hz"
    assert regular(1.0).in_words == "1 Hz"
    assert regular(1.0 / 0.3).in_words == "every 3.3 s"
    assert Received("/t", [], [3.0]).in_words == "once in 12 s"
    assert Received("/t").in_words == ""


def test_some_messages_tell_no_rate() -> None:
    for times in [[], [1.0], [1.0, 1.0]]:
        with case(times):
            heard = Received("/t", [], times)
            assert not heard.is_known
            assert math.isnan(heard.rate)
            assert math.isnan(heard.period)
            assert of_poses(heard) == {}


def test_a_rate_is_known_after_a_second_and_three_messages() -> None:
    assert not Received("/t", [], [0.0, 0.01, 0.02, 0.9]).is_known, "they may have waited somewhere"
    assert not Received("/t", [], [0.0, 4.0]).is_known
    assert Received("/t", [], [0.0, 0.5, 1.0]).is_known


def test_a_long_silence_counts() -> None:
    assert regular(0.5, silent=0.9).gap == 0.5
    assert regular(0.5, silent=8.0).gap == 8.0
    assert regular(4.0, silent=5.0).gap == 4.0, "the next one may be due"
    assert regular(0.005, silent=0.5).rate == pytest.approx(200.0), "a busy machine"


def test_usual_poses_need_nothing() -> None:
    for period in [0.02, 0.1, 0.5, 0.79]:
        with case(period):
            assert of_poses(regular(period)) == {}


def test_slow_poses_may_be_older() -> None:
    for period, age, wait in [(1.0, 2.5, 1.2), (2.9, 7.2, 3.5)]:
        with case(period, age, wait):
            found = of_poses(regular(period))
            assert found["pose.max_age"] == (age, f"s: poses come every {period:.1f} s")
            assert found["pose.wait"][0] == wait
            assert set(found) == {"pose.max_age", "pose.wait"}


def test_in_simulated_time_ages_are_longer_than_waits() -> None:
    found = of_poses(regular(0.5, pace=20.0))
    assert found["pose.max_age"] == (25.0, "s: poses come every 10.0 s")
    assert found["pose.wait"][0] == 0.6, "of real time"
    assert set(of_poses(regular(0.05, pace=20.0))) == {"pose.max_age"}


def test_fast_readings_need_a_longer_queue() -> None:
    for rate, written in [
        (10.0, None),
        (10.9, None),
        (11.5, 12.0),
        (209.0, 210.0),
        (1234.0, 1200.0),
    ]:
        with case(rate, written):
            found = of_readings(regular(1.0 / rate))
            assert found.get("reading.rate", (None,))[0] == written


def test_fast_poses_need_a_longer_queue() -> None:
    assert of_poses(regular(0.01))["pose.rate"][0] == 100.0


def test_slow_readings_are_waited_for() -> None:
    assert of_readings(regular(3.9)) == {}
    found = of_readings(regular(6.0))
    assert found == {"mission.reading_timeout": (15.0, "s: readings come every 6.0 s")}
    found = of_readings(regular(1.0), Received("/t", [], [3.0]))
    assert found == {"mission.reading_timeout": (30.0, "s: one reading came in 12 s")}


def test_the_slowest_and_the_fastest_count() -> None:
    found = of_poses(regular(2.0), regular(0.01), Received("/silent"))
    assert {key: value for key, (value, _) in found.items()} == {
        "pose.max_age": 5.0,
        "pose.wait": 2.4,
        "pose.rate": 100.0,
    }


def test_what_is_needed_are_parameters() -> None:
    heard = (regular(0.001), regular(9.0))
    nested: dict[str, dict[str, Any]] = {"map": {"kind": "line", "count": 1}}
    for key, (value, _) in {**of_poses(*heard), **of_readings(*heard)}.items():
        section, _, name = key.partition(".")
        nested.setdefault(section, {})[name] = value
    config = from_mapping(ActiveSensingConfig, nested)
    assert (config.pose.max_age, config.pose.wait, config.pose.rate) == (22.5, 10.8, 1000.0)
    assert (config.reading.rate, config.mission.reading_timeout) == (1000.0, 22.5)


def test_the_pace_of_a_clock() -> None:
    assert pace_of([5.0, 5.5, 6.1], [0.0, 0.5, 1.0]) == 1.0, "messages are not punctual"
    assert pace_of([0.0, 20.0], [0.0, 1.0]) == 20.0
    assert pace_of([0.0, 0.2], [0.0, 1.0]) == 0.2
    for stamps in ([], [1.0], [1.0, 1.0], [2.0, 1.0]):
        assert math.isnan(pace_of(stamps, [0.0, 1.0]))
