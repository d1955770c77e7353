"""Candidates Λ and section `belief:` from an estimate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import yaml

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing_learning import HyperParameterEstimate, belief_section, section_text
from gp_active_sensing_learning.fit import CANDIDATES, factors
from tests.cases import for_each

FOUND = HyperParameterEstimate(
    length_scales=(123.4,),
    signal_std=9.8765,
    noise_std=0.45678,
    errors=(0.5, 0.1, 0.1, math.inf),
    mean=(52.34,),
    log_posterior=(0.0, -0.001, -7.0),
    readings=75,
    places=70,
)


def test_a_grid_about_the_estimate() -> None:
    section = belief_section(FOUND, BeliefConfig(kernel="matern32"))
    scales = section.length_scales
    assert scales is not None
    assert len(scales) == CANDIDATES
    assert scales[CANDIDATES // 2] == 123.0
    assert np.diff(np.log(np.array(scales))) == pytest.approx(1.0 / 3.0, abs=0.02)
    assert section.signal_std == (9.88,)
    assert (section.mean_value, section.mean_std) == (52.3, 9.88)
    assert len(scales) * len(section.parts()) == 2 * CANDIDATES


def test_a_noise_that_may_have_each_place_s_own_in_it() -> None:
    """Candidates give half of the noise variance to places, and conserve its total on average."""
    section = belief_section(FOUND, BeliefConfig())
    whole = FOUND.noise_std**2
    shares = [(h.noise_std**2 / whole, h.place_std**2 / whole) for h in section.parts()]
    assert set(np.round(shares, 2).ravel()) == {0.2, 0.5, 0.8}
    assert np.mean(np.sum(shares, axis=1)) == pytest.approx(1.0, abs=0.01)
    point = belief_section(FOUND, BeliefConfig(), "point")
    (one,) = point.parts()
    assert one.noise_std**2 + one.place_std**2 == pytest.approx(whole, rel=0.01)
    assert one.noise_std == one.place_std


@for_each(
    ("gain", "way", "expected"),
    [
        (9.0, "grid", (1.23,)),
        (1.0, "grid", (0.0, 1.23)),
        (1.0, "point", (1.23,)),
        (-0.5, "paper", (0.0, 1.23)),
        (-0.5, "point", (0.0,)),
    ],
)
def test_a_place_part_that_was_learned(gain: float, way: str, expected: tuple[float, ...]) -> None:
    found = replace(FOUND, place_std=1.2345, place_gain=gain)
    section = belief_section(found, BeliefConfig(place_std=(7.0,), signal_std=(1.0,)), way)
    assert (section.noise_std, section.place_std) == ((0.457,), expected)


def test_the_paper_s_candidates() -> None:
    assert factors(FOUND, "paper").tolist() == [1.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    assert belief_section(FOUND, BeliefConfig(), "point").length_scales == (123.0,)
    with pytest.raises(ConfigError, match="expected one of grid, paper, point, got 'all'"):
        factors(FOUND, "all")


@for_each("way", ["grid", "paper", "point"])
def test_the_text_is_a_section_of_a_scenario(way: str) -> None:
    config = BeliefConfig(kernel="graph_matern52", mean="linear", mean_features=("speed_limit",))
    section = belief_section(FOUND, config, way)
    # What was learned takes the place of a model that a run began with.
    began = BeliefConfig(model="yesterday.npz", model_mark="0123456789abcdef")
    assert belief_section(FOUND, began) == belief_section(FOUND, BeliefConfig())
    text = section_text(section, {"learned from": "a table"})
    assert text.startswith("# learned from: a table\nbelief:\n")
    assert from_mapping(BeliefConfig, yaml.safe_load(text)["belief"]) == section
