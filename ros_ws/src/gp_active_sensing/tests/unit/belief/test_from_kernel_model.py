"""Belief from a kernel model: candidates, weights and rejected input."""

from __future__ import annotations

import dataclasses
import math
from operator import add, mul
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.belief import BeliefConfig, HyperParameters, belief_on, build_belief
from gp_active_sensing.belief.from_kernel_model import (
    OWN_SHARES,
    KernelCandidates,
    KernelCovariance,
    belief_of,
    candidates_of,
)
from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import KernelModel
from gp_active_sensing.kernel_model.model_file import model_mark, write_model
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import BASES, parse
from gp_active_sensing.topology import Topology, make_grid
from gp_active_sensing.types import FloatArray
from tests.cases import for_each
from tests.kernel_models import make_model, rows

NAMES = ("SE", "LIN", "PER+SE", "LIN×RQ", "RQ")
EACH = len(OWN_SHARES)
"""Number of candidates of a kernel with a length-scale."""
BOUNDS = {"SE": 0.0, "LIN": -0.5, "PER+SE": -1.0, "LIN×RQ": -2.0, "RQ": -9.0}


@pytest.fixture(scope="module")
def model() -> KernelModel:
    return make_model(NAMES, *rows(), bounds=BOUNDS)


@pytest.fixture
def path(model: KernelModel, tmp_path: Path) -> Path:
    return write_model(tmp_path / "yesterday.npz", model)


@pytest.fixture(scope="module")
def grid() -> Topology:
    return make_grid(6, 5, 18.0)


def with_spread(model: KernelModel, std: float) -> KernelModel:
    fits = tuple(
        dataclasses.replace(fit, theta_root=std * np.eye(fit.composite.size)) for fit in model.fits
    )
    return dataclasses.replace(model, fits=fits)


def test_candidates_are_pairs_of_kernel_and_length(path: Path, grid: Topology) -> None:
    belief = belief_on(BeliefConfig(model=str(path)), grid)
    assert belief.hyperparameters[0].length_scales == belief.hyperparameters[1].length_scales
    found = [(h.kernel, round(h.length_scales[0], 1)) for h in belief.hyperparameters[::EACH]]
    assert [kernel for kernel, _ in found] == (
        ["SE"] * 5 + ["LIN"] + ["PER+SE"] * 5 + ["LIN×RQ"] * 5
    )
    lengths = [ell for kernel, ell in found if kernel == "SE"]
    assert lengths[2] / lengths[0] == pytest.approx(2.0, rel=0.01)
    assert dict(found)["LIN"] == 90.0  # it has none: the extent of the map


def test_weights_start_from_those_of_the_kernels(
    model: KernelModel, path: Path, grid: Topology
) -> None:
    belief = belief_on(BeliefConfig(model=str(path)), grid)
    share = model.belief.probabilities[:4] / model.belief.probabilities[:4].sum()
    for name, expected in zip(model.names, share, strict=False):
        mine = np.array([h.kernel == name for h in belief.hyperparameters])
        assert belief.weights[mine].sum() == pytest.approx(expected)
    of_se = belief.weights[: 5 * EACH].reshape(5, EACH).sum(axis=1)
    assert belief.weights[0] == pytest.approx(belief.weights[1])
    assert of_se == pytest.approx(of_se[::-1])
    assert of_se[2] / of_se[0] == pytest.approx(math.exp(2.0))  # two standard deviations away


@for_each(("std", "reach"), [(0.0, 2.0), (0.1, 2.0), (0.6, math.exp(1.2)), (5, 8)])
def test_lengths_reach_two_standard_deviations_within_limits(
    model: KernelModel, grid: Topology, std: float, reach: float
) -> None:
    spread = with_spread(model, std)
    inputs = model.scaling.inputs(grid.features)
    groups = candidates_of(spread, inputs, extent=90.0)
    lengths = [h.length_scales[0] for h in groups[0].hyperparameters[::EACH]]
    assert lengths[-1] / lengths[2] == pytest.approx(reach)
    assert np.diff(np.log(lengths)) == pytest.approx([math.log(reach) / 2.0] * 4)


def test_signal_noise_and_mean_are_in_the_unit_of_the_readings(
    model: KernelModel, path: Path, grid: Topology
) -> None:
    belief = belief_on(BeliefConfig(model=str(path)), grid)
    scale = model.scaling.output_scale
    se = belief.hyperparameters[0]
    assert se.signal_std == pytest.approx(scale)
    # What was learned as noise, in each share of what is the place's own.
    for own, h in zip(OWN_SHARES, belief.hyperparameters[:EACH], strict=True):
        learned = scale * math.hypot(0.2, 1e-3)
        assert math.hypot(h.noise_std, h.place_std) == pytest.approx(learned)
        assert h.place_std**2 == pytest.approx(own * learned**2)
    assert belief.scale_known
    everywhere = belief.covariance.variance(np.arange(grid.n))
    for h, variance in zip(belief.hyperparameters, everywhere, strict=True):
        assert h.variance == pytest.approx(variance.mean())
    mean, _ = belief.predict()
    assert mean == pytest.approx(np.full(grid.n, model.scaling.output_shift))
    assert belief.mean.std.tolist() == [scale]


def test_the_mean_may_be_given_and_is_known_where_outputs_were_not_shifted(
    model: KernelModel, grid: Topology
) -> None:
    def made(config: BeliefConfig, model: KernelModel) -> FloatArray:
        return belief_of(model, config, grid.features, grid.feature_names).mean.std

    assert made(BeliefConfig(model="m", mean_std=7.0), model).tolist() == [7.0]
    centred = dataclasses.replace(model, settings={**model.settings, "vbks": {"centre": False}})
    assert made(BeliefConfig(model="m"), centred).size == 0


def test_other_features_are_refused(path: Path) -> None:
    config = BeliefConfig(model=str(path))
    with pytest.raises(ConfigError, match="learned with the inputs x, y, and the map's features"):
        build_belief(config, np.zeros((3, 2)), ("x", "hours"))
    with pytest.raises(ConfigError, match="features must be finite, place 1 has others"):
        build_belief(config, np.array([[0.0, 0.0], [np.nan, 0.0]]), ("x", "y"))


def test_a_log_model_goes_with_a_log_belief(grid: Topology) -> None:
    X, y = rows()
    model = make_model(("SE",), X, np.log(y), settings={"transform": "log"})
    config = BeliefConfig(model="m", transform="log")
    mean, _ = belief_of(model, config, grid.features, grid.feature_names).predict()
    assert mean.min() > 0.0
    with pytest.raises(ConfigError, match="give `transform: log`"):
        belief_of(model, BeliefConfig(model="m"), grid.features, grid.feature_names)


@for_each(
    "keys",
    [{"length_scales": [1.0]}, {"kernel": "matern32"}, {"mean": "linear"}, {"mean_value": 2.0}],
)
def test_keys_that_do_not_go_with_a_model(path: Path, keys: dict[str, Any]) -> None:
    (key,) = keys
    with pytest.raises(ConfigError, match=f"{key}: comes from belief.model"):
        from_mapping(BeliefConfig, {"model": str(path), **keys}, path="belief")
    with pytest.raises(ConfigError, match="give its file as"):
        from_mapping(BeliefConfig, {"model_mark": "abc"}, path="belief")


def test_the_file_is_found_by_its_name_and_is_the_one_that_is_meant(
    path: Path, grid: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPAS_DATA", str(path.parent))
    right = BeliefConfig(model="/elsewhere/yesterday.npz", model_mark=model_mark(path))
    assert len(belief_on(right, grid).hyperparameters) == 16 * EACH
    wrong = BeliefConfig(model=str(path), model_mark="0123456789abcdef")
    with pytest.raises(ConfigError, match="is not the model that is meant"):
        belief_on(wrong, grid)
    with pytest.raises(ConfigError, match=r"belief\.model: no file 'nowhere\.npz'"):
        belief_on(BeliefConfig(model="nowhere.npz"), grid)
    path.write_text("no model")
    with pytest.raises(ConfigError, match="is no model file"):
        belief_on(BeliefConfig(model=str(path)), grid)


def test_what_was_learned_is_always_among_the_candidates(model: KernelModel) -> None:
    for group in candidates_of(model, np.zeros((3, 2)), extent=9.0):
        fit = model.fits[model.names.index(group.composite.name)]
        assert any(np.array_equal(theta, fit.theta_mean) for theta in group.thetas)


PLACES = np.random.default_rng(0).normal(size=(14, 2))


def candidates(name: str, factors: tuple[float, ...] = (0.5, 1.0, 3.0)) -> KernelCandidates:
    composite = Composite(parse(name), 2)
    theta = 0.4 * np.random.default_rng([1, composite.size]).standard_normal(composite.size)
    thetas = np.array([composite.stretched(theta, factor) for factor in factors])
    h = tuple(HyperParameters((factor,), 1.0, 0.1, name) for factor in factors)
    return KernelCandidates(composite, thetas, h, np.full(len(factors), 1.0 / len(factors)))


def expected(groups: list[KernelCandidates], Z: FloatArray, s: float) -> FloatArray:
    return np.array(
        [s**2 * g.composite.covariance(theta, Z, Z) for g in groups for theta in g.thetas]
    )


@for_each("table", [True, False])
def test_every_kernel_of_the_grammar(table: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not table:
        monkeypatch.setattr("gp_active_sensing.belief.from_kernel_model._TABLE", 0)
    one = [parse(name) for name in BASES]
    two = {join(a, b) for join in (add, mul) for a in one for b in one}
    three = {join(a, b) for join in (add, mul) for a in two for b in one}
    names = [*sorted(map(str, {*one, *two, *three})), "MATERN12", "MATERN32", "LIN×MATERN52"]
    groups = [candidates(name, (0.7, 1.6)) for name in names]
    covariance = KernelCovariance(groups, PLACES, 3.0)
    assert covariance.n == 14
    assert len(covariance.hyperparameters) == 2 * len(names)
    wanted = expected(groups, PLACES, 3.0)
    rows, columns = np.array([3, 0, 9, 9]), np.array([1, 9, 3])
    scale = np.abs(wanted).max(axis=(1, 2))[:, None, None]
    found = covariance.between(rows, columns)
    # A correlation is known to the square root of what a squared distance is: MATERN12.
    assert np.abs((found - wanted[:, rows][:, :, columns]) / scale).max() < 1e-7
    assert covariance.variance(rows) == pytest.approx(
        np.diagonal(wanted, axis1=1, axis2=2)[:, rows], rel=1e-9
    )


def test_a_place_has_its_variance_with_itself() -> None:
    """The diagonal equals the variance to the bit, so that repeated readings need no jitter."""
    covariance = KernelCovariance([candidates("MATERN12+LIN"), candidates("PER×RQ")], PLACES, 2.0)
    everywhere = np.arange(14)
    whole = covariance.between(everywhere, everywhere)
    assert np.array_equal(np.diagonal(whole, axis1=1, axis2=2), covariance.variance(everywhere))
    assert np.array_equal(whole, np.swapaxes(whole, 1, 2))
    for matrix in whole:
        assert np.linalg.eigvalsh(matrix)[0] > -1e-8 * matrix.diagonal().max()
