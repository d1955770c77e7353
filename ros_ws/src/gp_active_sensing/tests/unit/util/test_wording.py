"""Values as a person reads them."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.util.wording import brief, distance, fixed, moment, shown, tells


def test_a_value_in_words() -> None:
    for value, words in (
        (None, "not set"),
        (True, "yes"),
        (np.bool_(False), "no"),
        ("", ""),
        ("running", "running"),
        (0, "0"),
        (12345678, "12345678"),
        (np.int64(7), "7"),
        (0.25, "0.25"),
        (np.float32(1.5), "1.5"),
        (1 / 3, "0.333333"),
        (math.nan, "not known"),
        (math.inf, "infinite"),
        (-math.inf, "minus infinite"),
        ([], "none"),
        (("a", None, 2.0), "a, not set, 2"),
        (np.array([1.0, 2.0]), "1, 2"),
        ({"boat": False}, "boat: no"),
        ({}, "none"),
    ):
        assert shown(value) == words


def test_a_number_has_its_unit_and_words_have_none() -> None:
    assert shown(5, "m") == "5 m"
    assert shown(0.5, "nat") == "0.5 nat"
    assert shown((1.0, 2.0), "m") == "1 m, 2 m"
    assert [shown(value, "m") for value in (None, True, "far", math.nan)] == [
        *("not set", "yes", "far", "not known")
    ]


def test_lengths_and_moments() -> None:
    assert [distance(m) for m in (0.0, 4.25, 42.3, 9999.0, 12345.0)] == [
        *("0.0 m", "4.2 m", "42 m", "9999 m", "12.3 km")
    ]
    assert [fixed(v, 2) for v in (-0.001, -0.006, 1.0)] == ["0.00", "-0.01", "1.00"]
    assert moment(1_500_000_000) == "1.500 s"
    assert moment(-1) == "-0.000 s"
    assert moment(1_763_832_000_123_456_789) == "1763832000.123 s", "as the ROS log has it"
    assert [brief(v) for v in (0.8, 0.0512, 12.34, 1234.5, 1e6, 0.0)] == [
        *("0.80", "0.051", "12.3", "1234", "1e+06", "0.00")
    ]


def test_what_readings_tell_of_each_other() -> None:
    assert "explain 43 % of the variance" in tells(0.426)
    for share in (0.004, 0.0, -0.3, -7.0):
        assert tells(share).startswith("these readings do not tell about places further off")
