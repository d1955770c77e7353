"""The page of a model, as a file and in a browser."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.report import kernel_page as kernels_module
from gp_active_sensing_learning.report.kernel_page import numbers, terms, write_kernel_page
from learning_support.models import copies, field_rows, hand_belief, made_model
from tests.browser import Browser, Page
from tests.cases import for_each
from tests.unit.report.runs import HOSTILE, data_of
from tests.unit.report.test_page import check

READY = "document.documentElement.dataset.ready"
TITLES = (
    "[...document.querySelectorAll('h3')].filter((h) => h.offsetParent).map((h) => h.textContent)"
)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

Open = Callable[..., Page]


@pytest.fixture
def show(browser: Browser) -> Iterator[Open]:
    """Open a page and check, in the end, that it neither complained nor asked for anything."""
    opened: list[Page] = []

    def show(path: Path, **looks: Any) -> Page:
        page = browser.page(**looks)
        opened.append(page)
        page.open(path, ready=READY)
        assert page.evaluate(READY) == "yes", page.complaints
        return page

    yield show
    browser.wait(0.05)
    for page in opened:
        assert page.complaints == []
        assert page.requests == []
        assert page.evaluate("window.bad === undefined")
        page.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three kernels over two inputs, one that failed, one that was pruned, and the rows."""
    rows = field_rows(2)
    gone = [
        ("PER×LIN", "diverged: its bound was not finite at step 12"),
        ("LIN", "pruned: not among the 3 most probable"),
    ]
    model = made_model(
        ["SE", "RQ", "PER+SE"], rows, dropped=gone, belief=hand_belief([0.5, 0.3, 0.2])
    )
    return write_kernel_page(model, tmp_path_factory.mktemp("page") / "model.html", rows)


def test_what_the_page_says(whole: Path) -> None:
    text = check(whole)
    names = data_of(whole)["belief"]["names"]
    assert "temperature: belief over 3 kernels" in text
    assert "Learned from 300 rows of yesterday.csv: temperature by x and y." in text
    assert f"Most probable is {names[0]}, with" in text
    assert "1 kernel dropped: PER×LIN; why is below" in text
    assert "diverged: its bound was not finite at step 12" in text
    assert "pruned: not among the 3 most probable" in text
    assert "The model was learned from these rows" in text
    assert "Averaged over all 3 kernels, each by its probability." in text
    assert "converged: the bound rose by less than 0.001 nat a row" in text
    assert "12 s of computing" in text
    assert "had not converged" not in text
    assert "inducing: 12" in text, "the settings"


def test_the_table_is_that_of_the_model(tmp_path: Path) -> None:
    model = made_model(["SE", "LIN"])
    text = check(write_kernel_page(model, tmp_path / "page.html"))
    for k, fit in enumerate(model.fits):
        q, error = model.belief.probabilities[k], model.belief.errors[k]
        assert f'<td class="text">{fit.name}</td><td>{q:.3f} ± {error:.3f}</td>' in text
        assert f"<td>{fit.bound:,.1f}</td>".replace("-", "−") in text
    assert data_of(tmp_path / "page.html")["check"] is None
    assert "Held against rows" in text, "the heading is there, hidden"


def test_predictions_are_averaged_over_the_first_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels_module, "AVERAGED", 2)
    model = made_model(["SE", "RQ", "LIN"])
    model = dataclasses.replace(model, belief=hand_belief([0.5, 0.3, 0.2]))
    text = check(write_kernel_page(model, tmp_path / "page.html"))
    assert "the 2 most probable kernels, which hold 80 % of the belief" in text
    curve = data_of(tmp_path / "page.html")["curves"][0]
    mean, _ = model.predict(
        np.array(curve["x"])[:, None], samples=kernels_module.SAMPLES, kernels=[0, 1], seed=3
    )
    assert curve["mean"] == pytest.approx(mean, rel=1e-5)


def test_kernels_are_in_the_order_of_the_belief(tmp_path: Path) -> None:
    model = made_model(["SE", "RQ", "LIN"])
    turned = dataclasses.replace(model, belief=hand_belief([0.2, 0.5, 0.3]))
    write_kernel_page(turned, tmp_path / "page.html")
    data = data_of(tmp_path / "page.html")
    names = [model.names[k] for k in (1, 2, 0)]
    assert data["belief"]["names"] == data["correlations"]["names"] == names
    assert data["belief"]["q"] == [0.5, 0.3, 0.2]
    given = turned.belief.correlations[np.ix_([1, 2, 0], [1, 2, 0])]
    assert np.array(data["correlations"]["values"]) == pytest.approx(given, abs=1e-3)
    assert f"Most probable is {names[0]}, with 50 %" in check(tmp_path / "page.html")


def test_charts_are_drawn(show: Open, whole: Path) -> None:
    page = show(whole)
    assert page.evaluate(TITLES) == [
        "Belief over kernels",
        "Correlations between the kernels’ g",
        "Belief q* against rows used",
        "Softmax(L) against rows used",
        "Local ELBO a row, as it rose [nat]",
        "Mean",
        "Standard deviation of the noise-free field",
        "temperature along x",
        "temperature along y",
        "Observed against predicted temperature",
        "Residuals [predicted sd]",
        "Residuals against those of a normal",
        "Residuals against x",
        "Residuals against y",
        "How often the intervals hold the value",
    ]
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


@for_each("count", [1, 2, 12, 144])
def test_few_and_many_kernels(show: Open, tmp_path: Path, count: int) -> None:
    path = write_kernel_page(copies(count), tmp_path / "page.html")
    text = check(path)
    page = show(path, width=390, height=844)
    assert page.evaluate(OVERFLOW) <= 0
    shown = page.evaluate("document.querySelectorAll('#belief-rows .name').length")
    assert shown == min(count, 16) + (count > 16)
    assert page.evaluate("document.getElementById('correlations').hidden") == (count == 1)
    assert page.evaluate("document.getElementById('check').hidden")
    assert text.count("<tr>") > count


def test_hostile_and_long_texts_stay_texts(show: Open, tmp_path: Path) -> None:
    rows = dataclasses.replace(
        field_rows(2), input_names=(HOSTILE, "a" * 200), output_name=HOSTILE, source=HOSTILE
    )
    long = "+".join(["PER×LIN×SE"] * 12)
    model = made_model(["SE", long], rows, dropped=[("PER", HOSTILE)])
    fits = tuple(dataclasses.replace(fit, outcome=HOSTILE) for fit in model.fits)
    model = dataclasses.replace(model, fits=fits, settings={"notes": [HOSTILE]})
    path = write_kernel_page(model, tmp_path / "page.html", rows)
    check(path)
    page = show(path)
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.evaluate(OVERFLOW) <= 0


@for_each(
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
