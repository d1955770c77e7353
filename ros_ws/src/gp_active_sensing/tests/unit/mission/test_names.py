from __future__ import annotations

import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.names import MOST_PROBES, probe_names


def test_so_many_probes_and_no_more() -> None:
    names = [f"probe_{i}" for i in range(MOST_PROBES)]
    assert probe_names(names) == tuple(names)
    with pytest.raises(ConfigError, match=f"probes: {MOST_PROBES + 1} names; expected"):
        probe_names([*names, "one_more"])
