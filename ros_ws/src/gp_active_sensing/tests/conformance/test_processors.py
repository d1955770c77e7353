"""Every policy goes to the same places on every processor, also where places are alike."""

from __future__ import annotations

import json
import math

import pytest

from gp_active_sensing.planning import policies
from tests.processors import on_two_processors

# On these maps most places have one that is alike, and with it a value that is equal but for the
# last digits. Readings that are all the same keep it so.
SCRIPT = """
from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.config import from_mapping
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.topology import MapConfig, build_topology
from gp_active_sensing.types import Budget, PlanLimit, Reading

said = {}
for kind in (
    {"kind": "line", "count": 31, "spacing": 1.0, "moves": "free"},
    {"kind": "grid", "columns": 7, "rows": 7, "spacing": 2.0, "moves": "free"},
    {"kind": "grid", "columns": 9, "rows": 9, "spacing": 2.0, "neighbours": 8},
):
    topology = build_topology(from_mapping(MapConfig, kind))
    config = BeliefConfig(
        length_scales=(1.0, 4.0, 12.0), signal_std=(3.0,), noise_std=(0.5,), mean_std=10.0
    )
    for policy in json.loads(sys.argv[1]):
        if policy["name"] == "ite" and not topology.free:
            continue  # it says that it cannot plan there
        belief = belief_on(config, topology)
        loop = SensingLoop(
            topology,
            belief,
            build_policy(policy),
            budget=Budget(readings=60),
            limit=PlanLimit(expansions=60),
        )
        at, went = topology.n // 2, []
        for stage in range(7):
            asked = loop.queries()
            plan = loop.ask(at)
            went.append([list(asked), list(plan.path), plan.lower, plan.upper])
            if not plan.path:
                break
            at = plan.path[-1]
            loop.tell([Reading(stage, at, 5.0)])
        said[f"{kind['kind']} {kind.get('moves', 'moves')} {policy}"] = went
"""
BAL = (
    {"name": "bal", "horizon": 3, "samples": 3, "alpha": 0.0},
    {"name": "bal", "horizon": 4, "samples": 2, "alpha": 0.01},
)


@pytest.mark.slow
def test_every_policy_goes_to_the_same_places_on_two_processors() -> None:
    names = [name for name in policies.names() if name != "external"]  # it is another program
    every = [{"name": name} for name in names] + list(BAL)
    one, other = on_two_processors(SCRIPT, json.dumps(every))
    assert one.keys() == other.keys()
    assert len(one) == 3 * len(every) - 1
    for name, stages in one.items():
        assert len(stages) == len(other[name])
        for stage, (a, b) in enumerate(zip(stages, other[name], strict=True), 1):
            assert a[:2] == b[:2], f"{name}: stage {stage}"
            for x, y in zip(a[2:], b[2:], strict=True):
                assert math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12), f"{name}: stage {stage}"


FIELD = """
from gp_active_sensing.sim.fields.truth import _symmetric_root

x = numpy.arange(14.0)
square = (x[:, None] - x) ** 2
square = square[:, None, :, None] + square[None, :, None, :]
white = numpy.random.default_rng(0).standard_normal(14 * 14)
said = [
    _symmetric_root(numpy.exp(-0.5 * square.reshape(14 * 14, -1) / scale**2))(white).tolist()
    for scale in (1.0, 3.0, 9.0)
]
"""


def test_a_simulated_field_is_the_same_on_two_processors() -> None:
    one, other = on_two_processors(FIELD)
    for field, again in zip(one, other, strict=True):
        assert max(abs(a - b) for a, b in zip(field, again, strict=True)) < 1e-9
