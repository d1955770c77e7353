"""Every registered policy is there and plans; all that colcon tests of the contract."""

from __future__ import annotations

import pytest

from gp_active_sensing.planning import build_policy, policies
from gp_active_sensing.planning.external import end as end_program
from tests.conformance.contract import REFUSED, ask, assert_legal, configured, shared_world


@pytest.mark.parametrize("part", range(8))
def test_every_policy_plans(part: int) -> None:
    for name in policies.names()[part::8]:
        policy = build_policy(configured(name))
        try:
            for map_name in ("line", "grid"):
                if (name, map_name) not in REFUSED:
                    world = shared_world(map_name)
                    assert_legal(policy, world, ask(policy, world)[0])
        finally:
            end_program(policy)
