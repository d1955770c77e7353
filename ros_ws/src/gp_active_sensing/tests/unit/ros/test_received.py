from __future__ import annotations

import math
from typing import Any

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.mission.config import ActiveSensingConfig, MissionConfig
from gp_active_sensing.mission.stream_config import PoseConfig, ReadingConfig
from gp_active_sensing.ros.received import Needs, TopicSample, pace_of, pose_needs, reading_needs
from tests.cases import case, for_each


def regular(period: float, *, pace: float = 1.0, silent: float = 0.0) -> TopicSample:
    count = max(2, 1 + round(1.0 / period))
    return TopicSample("/t", [], [period * i for i in range(count)], silent, pace)


def of_poses(*received: TopicSample) -> Needs:
    return pose_needs(PoseConfig(), received)


def of_readings(*received: TopicSample) -> Needs:
    return reading_needs(ReadingConfig(), MissionConfig(), received)


def test_rates_in_words() -> None:
    assert regular(0.05).in_words == "20 Hz"
    assert regular(1.0).in_words == "1 Hz"
    assert regular(1.0 / 0.3).in_words == "every 3.3 s"
    assert TopicSample("/t", [], [3.0]).in_words == "once in 12 s"
    assert TopicSample("/t").in_words == ""


def test_some_messages_tell_no_rate() -> None:
    for times in [[], [1.0], [1.0, 1.0]]:
        with case(times):
            received = TopicSample("/t", [], times)
            assert not received.is_known
            assert math.isnan(received.rate)
            assert math.isnan(received.period)
            assert of_poses(received) == {}


def test_a_rate_is_known_after_a_second_and_three_messages() -> None:
    assert not TopicSample("/t", [], [0.0, 0.01, 0.02, 0.9]).is_known, "they may have waited"
    assert not TopicSample("/t", [], [0.0, 4.0]).is_known
    assert TopicSample("/t", [], [0.0, 0.5, 1.0]).is_known


def test_a_long_silence_counts() -> None:
    assert regular(0.5, silent=0.9).gap == 0.5
    assert regular(0.5, silent=8.0).gap == 8.0
    assert regular(4.0, silent=5.0).gap == 4.0, "the next one may be due"
    assert regular(0.005, silent=0.5).rate == pytest.approx(200.0), "a busy machine"


@for_each(
    ("found", "needed"),
    [
        (of_poses(regular(0.02)), {}),
        (of_poses(regular(0.79)), {}),
        (of_poses(regular(1.0)), {"pose.max_age": 2.5, "pose.wait": 1.2}),
        (of_poses(regular(2.9)), {"pose.max_age": 7.2, "pose.wait": 3.5}),
        # In simulated time ages are longer than waits.
        (of_poses(regular(0.5, pace=20.0)), {"pose.max_age": 25.0, "pose.wait": 0.6}),
        (of_poses(regular(0.05, pace=20.0)), {"pose.max_age": 2.5}),
        (of_poses(regular(0.01)), {"pose.rate": 100.0}),
        (
            of_poses(regular(2.0), regular(0.01), TopicSample("/silent")),
            {"pose.max_age": 5.0, "pose.wait": 2.4, "pose.rate": 100.0},
        ),
        (of_readings(regular(1.0 / 10.9)), {}),
        (of_readings(regular(1.0 / 11.5)), {"reading.rate": 12.0}),
        (of_readings(regular(1.0 / 209.0)), {"reading.rate": 210.0}),
        (of_readings(regular(1.0 / 1234.0)), {"reading.rate": 1200.0}),
        (of_readings(regular(3.9)), {}),
        (of_readings(regular(6.0)), {"mission.reading_timeout": 15.0}),
        (of_readings(regular(1.0), TopicSample("/t", [], [3.0])), {"mission.reading_timeout": 30}),
    ],
)
def test_what_a_rate_needs(found: Needs, needed: dict[str, float]) -> None:
    assert {key: value for key, (value, _) in found.items()} == needed


def test_what_is_needed_are_parameters() -> None:
    received = (regular(0.001), regular(9.0))
    nested: dict[str, dict[str, Any]] = {"map": {"kind": "line", "count": 1}}
    for key, (value, _) in {**of_poses(*received), **of_readings(*received)}.items():
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
