"""Composite kernels: parameters, covariance against a direct evaluation, lengths and units."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import add, mul

import numpy as np
import pytest

from gp_active_sensing.kernels.base import BaseKernel, Expression, Sum
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import BASES, MATERN, parse
from tests.cases import for_each

LEVEL1 = [parse(name) for name in BASES]
LEVEL2 = [*LEVEL1, *(join(a, b) for join in (add, mul) for a in LEVEL1 for b in LEVEL1)]
LEVEL3 = tuple({*LEVEL2, *(join(a, b) for join in (add, mul) for a in LEVEL2 for b in LEVEL1)})
OTHERS = (
    *(parse(name) for name in MATERN),
    parse("MATERN12×LIN+MATERN52"),
    parse("(SE+PER)×(LIN+RQ)"),
    parse("((SE+PER)×LIN+RQ)×MATERN32"),
    parse("(SE×PER+LIN)×SE"),
)


def drawn(composite: Composite, seed: int) -> np.ndarray:
    mean, std = composite.prior
    return mean + std * np.random.default_rng([3, seed]).normal(size=composite.size)


def leaf_value(base: str, x: np.ndarray, z: np.ndarray, own: dict[str, list[float]]) -> float:
    lengths = own["length_scale"]
    square = sum(((a - b) / ell) ** 2 for a, b, ell in zip(x, z, lengths, strict=True))
    r = math.sqrt(square)
    if base == "se":
        return math.exp(-square / 2)
    if base == "rq":
        (alpha,) = own["alpha"]
        return (1 + square / (2 * alpha)) ** -alpha
    if base == "lin":
        return sum(a * b / ell**2 for a, b, ell in zip(x, z, lengths, strict=True))
    if base == "per":
        parts = zip(x, z, lengths, own["period"], strict=True)
        return math.exp(
            -2 * sum((math.sin(math.pi * (a - b) / p) / e) ** 2 for a, b, e, p in parts)
        )
    if base == "matern12":
        return math.exp(-r)
    if base == "matern32":
        return (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)
    return (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)


def has_sum(expression: Expression) -> bool:
    return isinstance(expression, Sum) or (
        not isinstance(expression, BaseKernel) and any(has_sum(part) for part in expression.parts)
    )


def value(
    expression: Expression, values: Iterator[float], scales: Iterator[float], inside: bool = False
) -> float:
    """Return the kernel's value: every additive term times its variance.

    A term is a leaf, or a product without sums, that is a summand or the whole.
    """
    if isinstance(expression, BaseKernel):
        return next(values) * (1.0 if inside else next(scales))
    if isinstance(expression, Sum):
        return sum(value(part, values, scales) for part in expression.parts)
    factor = 1.0
    if not inside and not any(isinstance(part, Sum) for part in expression.parts):
        factor = next(scales)
    return factor * math.prod(value(part, values, scales, inside=True) for part in expression.parts)


def direct(composite: Composite, theta: np.ndarray, x: np.ndarray, z: np.ndarray) -> float:
    numbers = np.exp(theta)
    own: list[dict[str, list[float]]] = [{} for _ in composite.leaves]
    scales = []
    for parameter, number in zip(composite.parameters, numbers, strict=True):
        if parameter.kind == "scale":
            scales.append(number**2)
        elif parameter.kind != "noise":
            own[parameter.leaf].setdefault(parameter.kind, []).append(float(number))
    named = zip(composite.leaves, own, strict=True)
    values = [leaf_value(base.name, x, z, o) for base, o in named]
    return value(composite.expression, iter(values), iter(scales))


@for_each("d", [1, 3])
def test_the_covariance_is_that_of_the_equations(d: int) -> None:
    rng = np.random.default_rng(d)
    X, Z = rng.normal(size=(3, d)), rng.normal(size=(2, d))
    for seed, expression in enumerate((*LEVEL3, *OTHERS)):
        composite = Composite(expression, d)
        theta = drawn(composite, seed)
        stated = np.array([[direct(composite, theta, x, z) for z in Z] for x in X])
        np.testing.assert_allclose(
            composite.covariance(theta, X, Z),
            stated,
            rtol=1e-9,
            atol=1e-12,
            err_msg=str(expression),
        )
        np.testing.assert_allclose(
            composite.variance(theta, X),
            [direct(composite, theta, x, x) for x in X],
            rtol=1e-12,
            err_msg=str(expression),
        )


def test_the_layout_of_theta() -> None:
    composite = Composite(parse("PER×RQ+LIN"), 2)
    assert [(p.kind, p.leaf, p.dimension) for p in composite.parameters] == [
        ("noise", -1, -1),
        ("scale", 0, -1),
        ("scale", 1, -1),
        ("length_scale", 0, 0),
        ("length_scale", 0, 1),
        ("period", 0, 0),
        ("period", 0, 1),
        ("length_scale", 1, 0),
        ("length_scale", 1, 1),
        ("alpha", 1, -1),
        ("length_scale", 2, 0),
        ("length_scale", 2, 1),
    ]
    assert composite.size == 12
    assert composite.where("length_scale", 1).tolist() == [7, 8]
    assert composite.where("period").tolist() == [5, 6]
    assert composite.where("alpha", 0).tolist() == []
    mean, std = composite.prior
    assert mean.shape == std.shape == (12,)
    assert (std > 0).all()
    assert mean[0] < 0.0, "less noise than signal is expected"


def test_stretched_moves_the_field_s_lengths_only() -> None:
    """A field that is stretched has the covariance that the old one has at shrunk inputs.

    Periods stay as they are.
    """
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    for seed, expression in enumerate(
        e for e in (*LEVEL3, *OTHERS) if not {"lin", "per"} & {leaf.name for leaf in e.leaves}
    ):
        composite = Composite(expression, 2)
        theta = drawn(composite, seed)
        before = theta.copy()
        np.testing.assert_allclose(
            composite.covariance(composite.stretched(theta, 2.5), X, Z),
            composite.covariance(theta, X / 2.5, Z / 2.5),
            rtol=1e-9,
            atol=1e-12,
            err_msg=str(expression),
        )
        np.testing.assert_array_equal(theta, before)
    composite = Composite(parse("LIN×SE+PER"), 1)
    theta = drawn(composite, 1)
    moved = np.flatnonzero(composite.stretched(theta, 3.0) - theta)
    kinds = [
        (composite.leaves[p.leaf].name, p.kind)
        for i, p in enumerate(composite.parameters)
        if i in moved
    ]
    assert sorted(kinds) == [("per", "length_scale"), ("se", "length_scale")]


def test_typical_length() -> None:
    unit = np.array([1.0, 1.0])

    def of(name: str, values: dict[tuple[str, int], list[float]]) -> float | None:
        composite = Composite(parse(name), 2)
        theta = np.zeros(composite.size)
        for (kind, leaf), numbers in values.items():
            theta[composite.where(kind, leaf)] = np.log(numbers)
        return composite.typical_length(theta, unit)

    assert of("SE", {("length_scale", 0): [2.0, 8.0]}) == pytest.approx(4.0)
    assert of("LIN", {("length_scale", 0): [2.0, 8.0]}) is None
    assert of("LIN×LIN+LIN", {}) is None
    assert of("LIN+SE", {("length_scale", 1): [9.0, 9.0]}) == pytest.approx(9.0)
    both = {("length_scale", 0): [1.0, 1.0], ("length_scale", 1): [16.0, 16.0]}
    assert of("RQ+SE", both) == pytest.approx(4.0)
    periodic = {("length_scale", 0): [0.5, 0.5], ("period", 0): [10.0, 10.0]}
    assert of("PER", periodic) == pytest.approx(0.5 * 10.0 / (2.0 * math.pi))
