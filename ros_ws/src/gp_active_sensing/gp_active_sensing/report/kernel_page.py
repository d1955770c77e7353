"""The page of a kernel model: what was learned, and how well it predicts."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import yaml

from gp_active_sensing.kernel_model import KernelModel
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.records.run_directory import json_ready
from gp_active_sensing.report.frame import build_page, tile
from gp_active_sensing.report.kernel_alike import Alike, alike
from gp_active_sensing.report.kernel_check import ModelCheck, check, domain
from gp_active_sensing.report.kernel_payload import kernel_payload, output_of
from gp_active_sensing.report.kernel_tables import (
    coverage_table,
    dropped_table,
    kernel_table,
    number_tables,
    said,
)
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.files import write_whole

__all__ = ["AVERAGED", "SAMPLES", "write_kernel_page"]

AVERAGED = 12
"""Kernels that predictions on the page are averaged over, at most."""
_ENOUGH = 0.995
"""Share of the belief that they need not exceed."""
SAMPLES = 16
"""Of the hyper-parameters, for a prediction; fewer where there are many inducing points."""
_LEAST_SAMPLES, _WORK = 4, 2048
_LEFT_OUT = ("pruned", "screened out")
"""Kernels that did not fail: they were not probable enough."""
_COMPARED = 200
"""Inputs at which kernels are compared."""
_SCRIPTS = ("base.js", "chart.js", "map.js", "heat.js", "kernels.js")


def write_kernel_page(model: KernelModel, path: Path | str, rows: Dataset | None = None) -> Path:
    """Write the page of a model and return its path.

    One HTML file that needs no network. Of many rows and kernels it shows a part, and says which.

    Args:
        model: a belief over kernels with its predictor.
        path: of the page.
        rows: to hold predictions against; None = the belief and the predictions alone.

    Raises:
        ConfigError: rows whose inputs are not those of the model, or none that can be used.
        RunError: the page cannot be written.
    """
    model, seed = model.ordered(), _seed(model)
    averaged, samples = _averaged_kernels(model), _samples(model)

    def predict(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, variance = model.predict(X, samples=samples, kernels=averaged, seed=seed)
        return mean, np.sqrt(variance)

    found = None if rows is None else check(model, rows, averaged, samples=samples, seed=seed)
    X = _compared(model, found, seed)
    same = alike(model, X, samples=samples, seed=seed) if len(model.fits) > 1 else ()
    return write_whole(
        Path(path),
        build_page(
            "kernels.html",
            _SCRIPTS,
            kernel_payload(model, predict, found),
            title=html.escape(f"{output_of(model)} · belief over kernels"),
            heading=html.escape(f"{output_of(model)}: belief over {_count(model)}"),
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
    """Return the seed that it was learned with, 0 where that is not known."""
    settings = model.settings.get("vbks")
    seed = settings.get("seed") if isinstance(settings, Mapping) else None
    return seed if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 else 0


def _averaged_kernels(model: KernelModel) -> list[int]:
    """Return the kernels that predictions are averaged over: nearly all of the belief."""
    below = np.cumsum(model.belief.probabilities) < _ENOUGH
    return list(range(min(int(below.sum()) + 1, AVERAGED, len(model.fits))))


def _samples(model: KernelModel) -> int:
    most = max(len(fit.inducing) for fit in model.fits)
    return max(_LEAST_SAMPLES, min(SAMPLES, _WORK // most))


def _compared(model: KernelModel, found: ModelCheck | None, seed: int) -> FloatArray:
    """Return inputs (m, d) at which kernels are compared: of rows, or drawn from their range."""
    if found is not None:
        some = np.linspace(0, len(found.inputs) - 1, min(_COMPARED, len(found.inputs)))
        return np.asarray(found.inputs[np.unique(some.astype(int))])
    low, high, _ = domain(model, None)
    rng = np.random.default_rng([seed, 0x414C])
    return np.asarray(rng.uniform(low, high, (_COMPARED, model.dimensions)))


def _count(model: KernelModel) -> str:
    return "one kernel" if len(model.fits) == 1 else f"{len(model.fits)} kernels"


def _learned(model: KernelModel) -> str:
    """Return in a sentence what was learned from what, and what came of it."""
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
    elbo = f"ELBO of the whole, of normalised values: {said(model.belief.elbo, 5)} nat."
    return f"{took}Each kernel has {over}. {elbo} {versions}".strip()


def _notes(model: KernelModel) -> Iterator[str]:
    told = model.settings.get("notes")
    yield from map(str, told if isinstance(told, list | tuple) else ())
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
    # A long name may break after a sign.
    name = re.sub("([+×])", "\\1\u200b", model.names[0])
    yield tile(name, f"most probable: {_percent(float(belief.probabilities[0]), error)}")
    if len(model.fits) > 1:
        p = belief.probabilities[belief.probabilities > 0.0]
        several = math.exp(-float(p @ np.log(p)))
        text = f"kernels in effect, of {len(model.fits)} (exponential of the belief's entropy)"
        yield tile(f"{several:.1f}", text)
    yield tile(f"{model.rows:,}", "rows learned from")
    if found is not None:
        better = f"of a constant: {said(found.spread)}"
        yield tile(f"{said(found.rmse)}", f"root mean squared error of a reading; {better}")
        shown = next(c for c in found.coverage if c.level == 0.90)
        text = f"of readings inside their 90 % interval ({_percent(shown.error)} standard error)"
        yield tile(_percent(shown.share), text)
        yield tile(f"{said(found.nlpd)} nat", "surprise at a reading (NLPD)")


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


def _alike(model: KernelModel, groups: tuple[Alike, ...]) -> str:
    """Return a list of the kernels that cannot be told apart, as HTML."""
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
