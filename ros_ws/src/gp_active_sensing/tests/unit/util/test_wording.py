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
        (1 / 3, "0.333333"),
        (math.nan, "not known"),
        ([], "none"),
        (("a", None, 2.0), "a, not set, 2"),
        (np.array([1.0, 2.0]), "1, 2"),
        ({"boat": False}, "boat: no"),
    ):
        assert shown(value) == words
