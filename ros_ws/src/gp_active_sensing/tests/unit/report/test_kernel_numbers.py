"""Hyper-parameters in the units of the data."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from gp_active_sensing.kernels.composite import Composite, scales
from gp_active_sensing.kernels.grammar import parse, sentences
from gp_active_sensing.report.kernel_tables import numbers, terms
from tests.unit.report.models import field_rows, made_model


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SE", ("SE",)),
        ("PER×SE+LIN", ("PER×SE", "LIN")),
        ("(PER+RQ)×LIN", ("PER", "RQ")),
        ("PER×LIN×SE", ("PER×LIN×SE",)),
    ],
)
def test_each_scale_multiplies_a_term(name: str, expected: tuple[str, ...]) -> None:
    assert terms(parse(name)) == expected


def test_there_are_as_many_terms_as_scales() -> None:
    for expression in sentences(3):
        assert len(terms(expression)) == scales(expression)


def test_units_are_those_of_the_data() -> None:
    """The kernel of the shown numbers, at given inputs, is the kernel of θ at normalised ones."""
    model = made_model(["PER×LIN+RQ"], field_rows(2))
    fit, scaling = model.fits[0], model.scaling
    shown = {(n.of, n.what, n.along): n.value for n in numbers(fit, model)}
    x, y = np.array([[3.0, 7.0]]), np.array([[11.0, 2.0]])
    normal = scaling.output_scale**2 * float(
        fit.composite.covariance(fit.theta_mean, scaling.inputs(x), scaling.inputs(y))[0, 0]
    )
    per = lin = square = 0.0
    for d, name in enumerate(model.input_names):
        a, b = x[0, d], y[0, d]
        angle = math.pi * (a - b) / shown["PER", "period", name]
        per += math.sin(angle) ** 2 / shown["PER", "roughness within a period", name] ** 2
        shift = scaling.input_shift[d]
        lin += (a - shift) * (b - shift) / shown["LIN", "length of the slope", name] ** 2
        square += ((a - b) / shown["RQ", "length-scale", name]) ** 2
    alpha = shown["RQ", "mixture of lengths a", ""]
    by_hand = shown["PER×LIN", "standard deviation", ""] ** 2 * math.exp(-2.0 * per) * lin
    by_hand += shown["RQ", "standard deviation", ""] ** 2 * (1 + square / (2 * alpha)) ** -alpha
    assert by_hand == pytest.approx(normal, rel=1e-12)
    variance = fit.noise_floor**2 + math.exp(2.0 * fit.theta_mean[0])
    noise = shown["readings", "noise, standard deviation", ""]
    assert noise == pytest.approx(scaling.output_scale * math.sqrt(variance))


def test_intervals_reach_two_deviations_of_the_logarithm() -> None:
    model = made_model(["SE"])
    length = list(numbers(model.fits[0], model))[-1]
    assert length.high / length.value == pytest.approx(math.exp(0.1))
    assert length.value / length.low == pytest.approx(math.exp(0.1))


def test_a_point_has_no_interval() -> None:
    model = made_model(["SE"])
    fit = dataclasses.replace(model.fits[0], theta_root=np.zeros((3, 3)))
    assert all(n.low == n.value == n.high for n in numbers(fit, model))
    assert len(list(numbers(fit, model))) == Composite(parse("SE"), 1).size
