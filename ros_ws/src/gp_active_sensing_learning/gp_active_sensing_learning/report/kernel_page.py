"""HTML page about a kernel model, with its kernels and the quality of its predictions."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from gp_active_sensing.kernel_model.model import KernelFit, KernelModel
from gp_active_sensing.kernels.base import BaseKernel
from gp_active_sensing.kernels.composite import Parameter
from gp_active_sensing.report.frame import build_page, tile
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.files import json_ready, write_whole
from gp_active_sensing_learning.data.dataset import Dataset
from gp_active_sensing_learning.kernel_lines import lengths_of, noise_of
from gp_active_sensing_learning.kernel_predictor import predict
from gp_active_sensing_learning.report.kernel_check import (
    ModelCheck,
    SimilarKernels,
    alike,
    check,
    domain,
)
from gp_active_sensing_learning.report.kernel_payload import kernel_payload, output_of

AVERAGED = 12
"""Largest number of kernels over which a prediction on the page averages."""
_ENOUGH = 0.995
"""Kernels are added to an average until their total probability reaches this value."""
SAMPLES = 16
"""Largest number of samples of θ for a prediction."""
_LEAST_SAMPLES, _WORK = 4, 2048
_LEFT_OUT = ("pruned", "screened out")
"""First words of the reasons for dropping a kernel that has no fault but a low probability."""
_COMPARED = 200
"""Largest number of inputs at which kernels are compared with one another."""
_SCRIPTS = ("base.js", "chart.js", "map.js", "heat.js", "kernels.js")


def write_kernel_page(model: KernelModel, path: Path | str, rows: Dataset | None = None) -> Path:
    """Write the page of a model and return its path.

    The page is one HTML file that needs no network. With many rows or kernels, the page shows a
    subset and says so. If test rows are given, the page compares them with predictions.

    Raises:
        ConfigError: the inputs of the rows differ from those of the model, or no row can be used.
        RunError: the page cannot be written.
    """
    model, seed = model.ordered(), _seed(model)
    count = "one kernel" if len(model.fits) == 1 else f"{len(model.fits)} kernels"
    averaged, samples = _averaged_kernels(model), _samples(model)

    def predicted(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, variance = predict(model, X, samples=samples, kernels=averaged, seed=seed)
        return mean, np.sqrt(variance)

    found = None if rows is None else check(model, rows, averaged, samples=samples, seed=seed)
    X = _compared(model, found, seed)
    same = alike(model, X, samples=samples, seed=seed) if len(model.fits) > 1 else ()
    return write_whole(
        Path(path),
        build_page(
            "kernels.html",
            _SCRIPTS,
            kernel_payload(model, predicted, found),
            package="gp_active_sensing_learning.report",
            title=html.escape(f"{output_of(model)} · belief over kernels"),
            heading=html.escape(f"{output_of(model)}: belief over {count}"),
            description=html.escape(_learned(model)),
            status=html.escape(_status(model)),
            notes="".join(f'<p class="note">{html.escape(n)}</p>' for n in _notes(model)),
            tiles="".join(_tiles(model, found)),
            averaged=html.escape(_averaged(model, len(averaged))),
            checked=html.escape(_checked(found)),
            coverage="" if found is None else coverage_table(found),
            kernels=kernel_table(model),
            alike=_alike(model, same),
            numbers=number_tables(model),
            dropped=dropped_table(model),
            settings=html.escape(
                yaml.safe_dump(json_ready(model.settings), sort_keys=False, allow_unicode=True)
            ),
        ),
    )


def _seed(model: KernelModel) -> int:
    settings = model.settings.get("vbks")
    seed = settings.get("seed") if isinstance(settings, Mapping) else None
    return seed if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 else 0


def _averaged_kernels(model: KernelModel) -> list[int]:
    below = np.cumsum(model.belief.probabilities) < _ENOUGH
    return list(range(min(int(below.sum()) + 1, AVERAGED, len(model.fits))))


def _samples(model: KernelModel) -> int:
    most = max(len(fit.inducing) for fit in model.fits)
    return max(_LEAST_SAMPLES, min(SAMPLES, _WORK // most))


def _compared(model: KernelModel, found: ModelCheck | None, seed: int) -> FloatArray:
    """Return inputs (m, d) for comparing kernels: those of the test rows, or random inputs."""
    if found is not None:
        some = np.linspace(0, len(found.inputs) - 1, min(_COMPARED, len(found.inputs)))
        return np.asarray(found.inputs[np.unique(some.astype(int))])
    low, high, _ = domain(model, None)
    rng = np.random.default_rng([seed, 0x414C])
    return np.asarray(rng.uniform(low, high, (_COMPARED, model.dimensions)))


def _learned(model: KernelModel) -> str:
    names = model.input_names
    by = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    text = f"Learned from {model.rows:,} rows of {model.source}: {output_of(model)} by {by}."
    belief = model.belief
    first, q = model.names[0], float(belief.probabilities[0])
    if len(model.fits) == 1:
        return f"{text} {first} is the only kernel, so there was nothing to choose."
    text += f" Most probable is {first}, with {_percent(q)}"
    text += f" ({_percent(float(belief.softmax[0]))} by the softmax of the local ELBOs)"
    return f"{text}; next is {model.names[1]}, with {_percent(float(belief.probabilities[1]))}."


def _status(model: KernelModel) -> str:
    found = model.settings.get("versions")
    versions = (
        ", ".join(f"{name} {version}" for name, version in found.items())
        if isinstance(found, Mapping)
        else ""
    )
    seconds = model.settings.get("seconds")
    took = f"{float(seconds):.0f} s of computing. " if isinstance(seconds, int | float) else ""
    points = {fit.point for fit in model.fits}
    over = (
        "a point estimate of the hyper-parameters"
        if points == {True}
        else "a Gaussian belief over the logarithms of the hyper-parameters"
    )
    elbo = f"ELBO of the whole, of normalised values: {rounded(model.belief.elbo, 5)} nat."
    return f"{took}Each kernel has {over}. {elbo} {versions}".strip()


def _notes(model: KernelModel) -> Iterator[str]:
    stored_notes = model.settings.get("notes")
    yield from map(str, stored_notes if isinstance(stored_notes, list | tuple) else ())
    if lost := [name for name, why in model.dropped if not why.startswith(_LEFT_OUT)]:
        shown = ", ".join(lost[:6]) + (" …" if len(lost) > 6 else "")
        yield f"{len(lost)} kernel{'s' if len(lost) > 1 else ''} dropped: {shown}; why is below"
    limited = [fit.name for fit in model.fits if not fit.outcome.startswith("converged")]
    if limited:
        shown = ", ".join(limited[:6]) + (" …" if len(limited) > 6 else "")
        yield (
            f"{len(limited)} of {len(model.fits)} kernels had not converged when they ended: "
            f"{shown}; more iterations may change the belief"
        )


def _tiles(model: KernelModel, found: ModelCheck | None) -> Iterator[str]:
    belief = model.belief
    error = float(belief.errors[0])
    # Allow a line break after each operator of a long kernel name.
    name = re.sub("([+×])", "\\1\u200b", model.names[0])
    yield tile(name, f"most probable: {_percent(float(belief.probabilities[0]), error)}")
    if len(model.fits) > 1:
        p = belief.probabilities[belief.probabilities > 0.0]
        several = math.exp(-float(p @ np.log(p)))
        text = f"kernels in effect, of {len(model.fits)} (exponential of the belief's entropy)"
        yield tile(f"{several:.1f}", text)
    yield tile(f"{model.rows:,}", "rows learned from")
    if found is not None:
        better = f"of a constant: {rounded(found.spread)}"
        yield tile(f"{rounded(found.rmse)}", f"root mean squared error of a reading; {better}")
        shown = next(c for c in found.coverage if c.level == 0.90)
        text = f"of readings inside their 90 % interval ({_percent(shown.error)} standard error)"
        yield tile(_percent(shown.share), text)
        yield tile(f"{rounded(found.nlpd)} nat", "surprise at a reading (NLPD)")


def _percent(share: float, error: float | None = None) -> str:
    text = f"{100.0 * share:.1f}"
    if error:
        return f"{text} ± {max(100.0 * error, 0.1):.1f} %"
    return f"{text.removesuffix('.0')} %"


def _averaged(model: KernelModel, averaged: int) -> str:
    if len(model.fits) == 1:
        return "Predictions of the only kernel."
    if averaged == len(model.fits):
        return f"Averaged over all {averaged} kernels, each by its probability."
    share = float(model.belief.probabilities[:averaged].sum())
    if averaged == 1:
        return f"Of the most probable kernel alone, which holds {_percent(share)} of the belief."
    return (
        f"Averaged over the {averaged} most probable kernels, which hold {_percent(share)} of the "
        "belief."
    )


def _checked(found: ModelCheck | None) -> str:
    if found is None:
        return ""
    count, total = len(found.observed), found.total
    some = f"all {total:,} rows"
    if count < total:
        some = f"{count:,} of {total:,} rows, drawn at random,"
    text = f"Predictions of {some} beside their values."
    if found.seen:
        text += (
            " The model was learned from these rows: rows that it has not seen may be predicted "
            "less well."
        )
    return text


def _alike(model: KernelModel, groups: tuple[SimilarKernels, ...]) -> str:
    if not groups:
        return ""
    items = ""
    for group in groups:
        leader = model.names[group.kernels[0]]
        share = float(model.belief.probabilities[list(group.kernels)].sum())
        others = "; ".join(
            f"{model.names[k]}: {why}" for k, why in zip(group.kernels[1:], group.why, strict=True)
        )
        items += (
            f"<li><b>{html.escape(leader)}</b>, together {_percent(share)}: "
            f"{html.escape(others)}</li>"
        )
    return (
        "<h2>Kernels that say the same</h2><p>The belief is shared between kernels that the rows "
        f"cannot tell apart; what counts for a prediction is their sum.</p><ul>{items}</ul>"
    )


_WORDS = {
    "PER": "roughness within a period",
    "LIN": "length of the slope",
}
"""Meaning of the parameter length-scale in base kernels where this name is misleading."""


@dataclass(frozen=True)
class Number:
    """Hyper-parameter in the unit of its input or of the output.

    Args:
        of: base kernel or term of the kernel that has the hyper-parameter.
        what: kind of hyper-parameter, such as length-scale or period.
        along: name of the input; "" = the hyper-parameter belongs to no input.
        value: median of the log-normal belief.
        low, high: limits at two standard deviations of the logarithm; equal to `value` for a point
            estimate.
    """

    of: str
    what: str
    along: str
    value: float
    low: float
    high: float


def numbers(fit: KernelFit, model: KernelModel) -> Iterator[Number]:
    """Yield the hyper-parameters of a kernel in the order of θ, which begins with the noise."""
    composite, scaling = fit.composite, model.scaling
    shown = tuple(map(str, composite.expression.terms))
    rows = zip(composite.parameters, fit.theta_mean.tolist(), fit.theta_std.tolist(), strict=True)
    for parameter, mean, std in rows:
        of, what, along = _described(parameter, composite.leaves, shown, model)
        size = scaling.output_scale if parameter.kind in ("noise", "scale") else 1.0
        dimensionless = parameter.kind == "length_scale" and of == "PER"
        if parameter.dimension >= 0 and not dimensionless:
            size = float(scaling.input_scale[parameter.dimension])
        floor = fit.noise_floor if parameter.kind == "noise" else 0.0
        low, value, high = (
            size * math.hypot(floor, math.exp(mean + k * std)) for k in (-2.0, 0.0, 2.0)
        )
        yield Number(of, what, along, value, low, high)


def _described(
    parameter: Parameter, leaves: tuple[BaseKernel, ...], shown: tuple[str, ...], model: KernelModel
) -> tuple[str, str, str]:
    """Return the fields `of`, `what` and `along` of the `Number` that shows a hyper-parameter."""
    if parameter.kind == "noise":
        return "readings", "noise, standard deviation", ""
    if parameter.kind == "scale":
        return shown[parameter.leaf], "standard deviation", ""
    base = str(leaves[parameter.leaf])
    if parameter.kind == "alpha":
        return base, "mixture of lengths a", ""
    along = model.input_names[parameter.dimension]
    if parameter.kind == "period":
        return base, "period", along
    return base, _WORDS.get(base, "length-scale"), along


_FIRST = 16
"""Number of kernels in the first table. Further kernels are in a collapsed table."""
_DESCRIBED = 12
"""Largest number of kernels whose hyper-parameters are listed."""
_MOST_LENGTHS = 4
"""Largest number of inputs for which the table has a column of lengths."""


def rounded(value: float, digits: int = 3) -> str:
    """Return a number as text with `digits` significant digits."""
    size = abs(value)
    if value == 0.0:
        return "0"
    if size >= 1e6 or size < 1e-4:
        return f"{value:.{digits - 1}e}"
    return f"{float(f'{value:.{digits}g}'):,.10g}".replace("-", "−")


def kernel_table(model: KernelModel) -> str:
    """Return an HTML table of the first kernels, and a collapsed table of all further kernels."""
    table = _rows(model, range(min(_FIRST, len(model.fits))))
    first = f'<figure class="table">{table}</figure>'
    if len(model.fits) <= _FIRST:
        return first
    rest = _rows(model, range(_FIRST, len(model.fits)))
    return (
        f"{first}<details><summary>The other {len(model.fits) - _FIRST} kernels</summary>{rest}"
        "</details>"
    )


def _rows(model: KernelModel, which: Sequence[int]) -> str:
    belief, best = model.belief, max(fit.bound for fit in model.fits)
    shown = model.input_names[:_MOST_LENGTHS]
    columns = [
        ("kernel", "text"), ("q*", ""), ("softmax(L)", ""), ("L [nat]", ""),
        ("behind [nat]", ""), ("noise", ""),
        *((f"length {name}", "") for name in shown), ("inducing", ""), ("iterations", ""),
        ("outcome", "text"),
    ]  # fmt: skip
    body = []
    for k in which:
        fit = model.fits[k]
        over = lengths_of(fit, model.scaling) or (None,) * model.dimensions
        body.append(
            (
                fit.name,
                f"{belief.probabilities[k]:.3f} ± {belief.errors[k]:.3f}",
                f"{belief.softmax[k]:.3f}",
                f"{fit.bound:,.1f}".replace("-", "−"),
                f"{best - fit.bound:,.1f}",
                rounded(noise_of(fit, model.scaling)),
                *("–" if length is None else rounded(length) for length in over[:_MOST_LENGTHS]),
                str(len(fit.inducing)),
                str(fit.iterations),
                fit.outcome.partition(":")[0],
            )
        )
    return _table(columns, body)


def number_tables(model: KernelModel) -> str:
    """Return a collapsed HTML table of hyper-parameters for each of the first kernels."""
    found = []
    for k, fit in enumerate(model.fits[:_DESCRIBED]):
        point = fit.point
        columns = [("of", "text"), ("hyper-parameter", "text"), ("along", "text"), ("value", "")]
        columns += [] if point else [("from", ""), ("to", "")]
        body = [_number(number, point) for number in numbers(fit, model)]
        title = f"{fit.name}: {fit.composite.size} hyper-parameters"
        found.append(
            f"<details{'' if k else ' open'}><summary>{html.escape(title)}</summary>"
            f'<p class="more">{html.escape(fit.outcome)}.</p>{_table(columns, body)}</details>'
        )
    left = len(model.fits) - _DESCRIBED
    if left > 0:
        found.append(
            f'<p class="more">Those of the other {left} kernels are in the model file.</p>'
        )
    return "".join(found)


def _number(number: Number, point: bool) -> tuple[str, ...]:
    head = (number.of, number.what, number.along, rounded(number.value))
    return head if point else (*head, rounded(number.low), rounded(number.high))


def coverage_table(found: ModelCheck) -> str:
    """Return an HTML table of the nominal and the actual coverage of prediction intervals."""
    body = [
        (f"{100 * c.level:.0f} %", f"{100 * c.share:.1f} %", f"± {100 * c.error:.1f} %")
        for c in found.coverage
    ]
    return _table([("interval", ""), ("values inside", ""), ("standard error", "")], body)


def dropped_table(model: KernelModel) -> str:
    """Return an HTML table of dropped kernels with reasons; "" = no kernel was dropped."""
    if not model.dropped:
        return ""
    columns = [("kernel", "text"), ("why it is not in the model", "text wrap")]
    summary = f"Kernels that are not in the model ({len(model.dropped)})"
    few = " open" if len(model.dropped) <= 8 else ""
    return f"<details{few}><summary>{summary}</summary>{_table(columns, model.dropped)}</details>"


def _table(columns: Sequence[tuple[str, str]], body: Sequence[Sequence[str]]) -> str:
    def cell(tag: str, look: str, text: str) -> str:
        of = f' class="{look}"' if look else ""
        return f"<{tag}{of}>{html.escape(text)}</{tag}>"

    head = "".join(cell("th", look, name) for name, look in columns)
    rows = "".join(
        "<tr>"
        + "".join(cell("td", look, text) for (_, look), text in zip(columns, row, strict=True))
        + "</tr>"
        for row in body
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'
