"""`belief.drift`: valid combinations of keys, and error messages."""

from __future__ import annotations

import pytest

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.belief.drift import NO_DRIFT, DriftConfig
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology import MapConfig, build_topology
from tests.cases import for_each

BAD = [
    ({"kind": "kernell"}, "Did you mean 'kernel'"),
    ({"kind": "injection"}, r"drift\.one of rate and doubling"),
    ({"kind": "injection", "rate": 1, "doubling": 1}, "got 2 of them"),
    ({"kind": "kernel", "window": 3, "time_scale": 1}, r"drift\.window: is not for kind kernel"),
    ({"kind": "window", "window": float("nan")}, r"drift\.window"),
    ({"forget_after": 10}, r"drift\.forget_after: is not for kind none"),
]


@for_each(("given", "message"), BAD)
def test_bad_sections_say_what_is_wrong(given: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(BeliefConfig, {"drift": given}, path="belief")


def test_a_rate_needs_a_scale() -> None:
    rate = DriftConfig(kind="injection", rate=0.1)
    with pytest.raises(ConfigError, match=r"drift\.rate: has no unit"):
        BeliefConfig(drift=rate)
    assert BeliefConfig(drift=rate, noise_std=(0.1,)).scale_known


def test_a_policy_may_bring_its_own_but_no_other_than_what_is_configured() -> None:
    topology = build_topology(MapConfig(kind="line", count=5))
    own = DriftConfig(kind="window", window=9.0)
    assert belief_on(BeliefConfig(), topology).drift == NO_DRIFT
    assert belief_on(BeliefConfig(), topology, own).drift == own
    assert belief_on(BeliefConfig(drift=own), topology, own).drift == own
    other = BeliefConfig(drift=DriftConfig(kind="window", window=8.0))
    with pytest.raises(ConfigError, match=r"belief\.drift: is kind window.* take gp_ucb"):
        belief_on(other, topology, own)
