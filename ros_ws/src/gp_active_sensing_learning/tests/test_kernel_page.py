"""Page about a kernel model, as a file and in a browser."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from gp_active_sensing_learning.report.kernel_page import numbers, write_kernel_page
from learning_support.models import field_rows, hand_belief, made_model
from tests.browser import OVERFLOW, TITLES, Open
from tests.unit.report.runs import HOSTILE, data_of
from tests.unit.report.test_page import check


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model of three kernels, with a failed and a pruned one, and its rows."""
    rows = field_rows(2)
    gone = [
        ("PER×LIN", "diverged: its bound was not finite at step 12"),
        ("LIN", "pruned: not among the 3 most probable"),
    ]
    model = made_model(
        ["SE", "RQ", "PER+SE"], rows, dropped=gone, belief=hand_belief([0.5, 0.3, 0.2])
    )
    return write_kernel_page(model, tmp_path_factory.mktemp("page") / "model.html", rows)


def test_charts_are_drawn(show: Open, whole: Path) -> None:
    page = show(whole)
    titles = page.evaluate(TITLES)
    assert len(titles) == 15
    assert {"Belief over kernels", "temperature along y", "Residuals against x"} <= set(titles)
    data = data_of(whole)
    bars = "[...document.querySelectorAll('#belief-rows i.first')].map((i) => i.style.width)"
    widths = [float(width.rstrip("%")) for width in page.evaluate(bars)]
    assert widths == pytest.approx([100.0 * q for q in data["belief"]["q"]], abs=0.01)
    assert page.evaluate("document.querySelectorAll('#matrix rect').length") == 9
    cells = data["map"]["columns"] * data["map"]["rows"]
    assert page.evaluate("document.querySelectorAll('#field rect').length") == 2 * cells
    points = len(data["map"]["points"])
    assert page.evaluate("document.querySelectorAll('#field circle').length") == 2 * points
    assert page.evaluate("document.querySelectorAll('#history circle').length") == 2 * 3 * 4
    assert page.evaluate(OVERFLOW) <= 0


def test_hostile_and_long_texts_stay_texts(show: Open, tmp_path: Path) -> None:
    names = {"input_names": (HOSTILE, "a" * 200), "output_name": HOSTILE}
    rows = dataclasses.replace(field_rows(2), source=HOSTILE, **names)
    long = "+".join(["PER×LIN×SE"] * 12)
    model = made_model(["SE", long], rows, dropped=[("PER", HOSTILE)])
    fits = tuple(dataclasses.replace(fit, outcome=HOSTILE) for fit in model.fits)
    model = dataclasses.replace(model, fits=fits, settings={"notes": [HOSTILE]})
    path = write_kernel_page(model, tmp_path / "page.html", rows)
    check(path)
    page = show(path)
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.evaluate(OVERFLOW) <= 0


def test_units_are_those_of_the_data() -> None:
    """Shown hyper-parameters and original inputs give the kernel of θ and normalised inputs."""
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
