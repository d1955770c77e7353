"""The covariance of candidates with different kernels, against the kernels one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gp_active_sensing.belief import HyperParameters, KernelCovariance
from gp_active_sensing.belief.kernel_covariance import KernelCandidates
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import kernel_set, parse
from gp_active_sensing.types import FloatArray

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


@pytest.mark.parametrize("table", [True, False])
def test_every_kernel_of_the_grammar(table: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not table:
        monkeypatch.setattr("gp_active_sensing.belief.kernel_covariance._TABLE", 0)
    names = [str(e) for e in kernel_set("k144,MAT12,MAT32,LIN×MAT52")]
    groups = [candidates(name, (0.7, 1.6)) for name in names]
    covariance = KernelCovariance(groups, PLACES, 3.0)
    assert covariance.n == 14
    assert len(covariance.hyperparameters) == 2 * len(names)
    wanted = expected(groups, PLACES, 3.0)
    rows, columns = np.array([3, 0, 9, 9]), np.array([1, 9, 3])
    scale = np.abs(wanted).max(axis=(1, 2))[:, None, None]
    found = covariance.between(rows, columns)
    # A correlation is known to the square root of what a squared distance is: MAT12.
    assert np.abs((found - wanted[:, rows][:, :, columns]) / scale).max() < 1e-7
    assert covariance.variance(rows) == pytest.approx(
        np.diagonal(wanted, axis1=1, axis2=2)[:, rows], rel=1e-9
    )


def test_a_place_has_its_variance_with_itself() -> None:
    """To the bit: otherwise jitter would be needed where places were read twice."""
    covariance = KernelCovariance([candidates("MAT12+LIN"), candidates("PER×RQ")], PLACES, 2.0)
    everywhere = np.arange(14)
    whole = covariance.between(everywhere, everywhere)
    assert np.array_equal(np.diagonal(whole, axis1=1, axis2=2), covariance.variance(everywhere))
    assert np.array_equal(whole, np.swapaxes(whole, 1, 2))
    for matrix in whole:
        assert np.linalg.eigvalsh(matrix)[0] > -1e-8 * matrix.diagonal().max()


def test_refused() -> None:
    with pytest.raises(ValueError, match="at least one candidate"):
        KernelCovariance([], PLACES, 1.0)
    with pytest.raises(ValueError, match=r"finite inputs \(n, 2\), got shape \(14, 1\)"):
        KernelCovariance([candidates("SE")], PLACES[:, :1], 1.0)
    with pytest.raises(ValueError, match="finite inputs"):
        KernelCovariance([candidates("SE")], np.full((3, 2), math.nan), 1.0)
