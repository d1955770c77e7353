from __future__ import annotations

import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.names import LONGEST_NAME, MOST_PROBES, numbered, probe_names


def test_so_many_probes_and_no_more() -> None:
    names = [f"probe_{i}" for i in range(MOST_PROBES)]
    assert probe_names(names) == tuple(names)
    with pytest.raises(ConfigError, match=f"probes: {MOST_PROBES + 1} names; expected"):
        probe_names([*names, "one_more"])


def test_a_number_of_probes_is_bounded_before_they_are_named() -> None:
    assert len(numbered(str(MOST_PROBES))) == len(numbered(f"00{MOST_PROBES}")) == MOST_PROBES
    for number in (str(MOST_PROBES + 1), "3000000", "9" * 5000):
        with pytest.raises(ConfigError, match=f"expected {MOST_PROBES} at most"):
            numbered(number)


def test_a_name_has_to_fit_into_that_of_a_topic() -> None:
    longest = "a" * LONGEST_NAME
    assert probe_names([longest]) == (longest,)
    with pytest.raises(ConfigError, match="a name of 301 characters"):
        probe_names(["a" * 301])
