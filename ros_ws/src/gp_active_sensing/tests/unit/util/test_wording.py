"""Values as a person reads them."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.util.wording import shown


def test_a_value_in_words() -> None:
    for value, words in (
        (None, "not set"),
        (True, "yes"),
        ("", ""),
        (0, "0"),
        (12345678, "12345678"),
        (np.float32(1.5), "1.5"),
        (1 / 3, "0.333333"),
        (math.nan, "not known"),
        (math.inf, "infinite"),
        ([], "none"),
        (("a", None, 2.0), "a, not set, 2"),
        (np.array([1.0, 2.0]), "1, 2"),
        ({"boat": False}, "boat: no"),
        ({}, "none"),
    ):
        assert shown(value) == words
