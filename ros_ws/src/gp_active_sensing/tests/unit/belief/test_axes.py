"""A length-scale per axis, unknown on a map with heights or given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import belief_on
from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.config import NONE_WEIGHT, BeliefConfig
from gp_active_sensing.belief.grid import RATIOS
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels import NONE
from gp_active_sensing.sim.fields.config import FieldConfig
from gp_active_sensing.sim.fields.truth import build_truth
from gp_active_sensing.topology import make_grid
from gp_active_sensing.topology.base import Topology
from tests.cases import for_each

STEP, LAYER = 20.0, 2.0
GRID = make_grid(6, 6, STEP, heights=[-LAYER * k for k in range(6)])


def believed(topology: Topology = GRID, **given: Any) -> Belief:
    return belief_on(from_mapping(BeliefConfig, given), topology)


def ratios(belief: Belief) -> set[float]:
    found = (h.length_scales for h in belief.hyperparameters if len(h.length_scales) == 3)
    return {round(z / x, 6) for x, _, z in found}


def test_the_ratio_is_unknown_where_a_map_has_heights() -> None:
    belief = believed()
    assert ratios(belief) == {round(LAYER / STEP * r, 6) for r in RATIOS}
    names = np.array([h.kernel for h in belief.hyperparameters])
    shares = {name: float(belief.weights[names == name].sum()) for name in set(names)}
    less = 1.0 / (3.0 + NONE_WEIGHT)
    assert shares == {n: pytest.approx(less * (NONE_WEIGHT if n == NONE else 1.0)) for n in names}
    assert len(names) <= 260
    assert ratios(believed(make_grid(6, 6, STEP))) == set()
    level = make_grid(6, 6, STEP, heights=[-3.0])  # one depth tells nothing of a ratio
    assert ratios(believed(level)) == set()


def test_length_scales_that_are_given() -> None:
    with pytest.raises(ConfigError, match="length_scales a list"):
        believed(axis_ratio=[0.5])
    each = believed(kernel="se", length_scales=[[10, 20, 3]])
    assert {h.length_scales for h in each.hyperparameters} == {(10, 20, 3)}
    one = believed(kernel="se", length_scales=[10])
    assert {h.length_scales for h in one.hyperparameters} == {(10,)}


@for_each("true", [0.05, 0.1, 0.3])
def test_it_follows_the_readings_and_predicts_better(
    monkeypatch: pytest.MonkeyPatch, true: float
) -> None:
    field = FieldConfig(kind="gp", kernel="matern32", length_scale=(50.0, 50.0, 50.0 * true))
    rng = np.random.default_rng(3)
    gained = []
    for seed in range(4):
        truth = build_truth(field, GRID, seed).at(0.0)
        read = rng.permutation(GRID.n)[:90]
        unread = np.setdiff1d(np.arange(GRID.n), read)
        errors = []
        ours = believed()
        with monkeypatch.context() as patched:
            patched.setattr("gp_active_sensing.belief.build.axis_ratios", lambda *_: (1.0,))
            level = believed()
        for belief in (ours, level):
            for place in read.tolist():
                belief.observe(place, truth[place] + 0.1 * rng.standard_normal())
            mean = belief.predict(unread)[0]
            errors.append(float(np.sqrt(np.mean((mean - truth[unread]) ** 2))))
        gained.append(errors[0] / errors[1])
    assert np.mean(gained) < 0.9  # of the error of one length-scale for all axes
