"""The page: header, headline figures, pictures, tables; no network, no script."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import yaml

from gp_active_sensing.errors import RunError
from gp_active_sensing.metrics import rmspe
from gp_active_sensing.report.curves import stage_pictures
from gp_active_sensing.report.maps import field_pictures
from gp_active_sensing.report.source import RunData, load_run
from gp_active_sensing.report.style import figure_style, require_matplotlib

__all__ = ["write_report"]

PAGE = "report.html"


def write_report(run_dir: Path | str) -> Path:
    """Write ``report.html`` into a run directory and return its path.

    The page is a function of the directory: ``config.yaml`` says the map, the belief and, in
    simulation, the truth; ``journal.jsonl`` has the readings, ``records.jsonl`` the stages.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        RunError: not a run directory, or the page cannot be written.
    """
    run_dir = Path(run_dir)
    data = load_run(run_dir)
    require_matplotlib()
    with figure_style():
        field, curves = field_pictures(data), stage_pictures(data)
    page = run_dir / PAGE
    beside = run_dir / f".{PAGE}.part"
    try:
        beside.write_text(_fill(data, field, curves), encoding="utf-8")
        os.replace(beside, page)
    except OSError as error:
        msg = f"{page}: cannot write: {error.strerror or error}"
        raise RunError(msg) from error
    return page


def _fill(
    data: RunData, field: Sequence[tuple[str, str]], curves: Sequence[tuple[str, str]]
) -> str:
    template = Template(
        resources.files("gp_active_sensing.report").joinpath("page.html").read_text("utf-8")
    )
    config = yaml.safe_dump(dict(data.config), sort_keys=False, allow_unicode=True)
    name = str(data.config.get("name") or data.topology.name)
    policy = data.config.get("policy")
    policy_name = policy.get("name") if isinstance(policy, dict) else policy
    heading = f"{name} · {policy_name or 'policy not said'}"
    if data.config.get("seed") is not None:
        heading += f" · seed {data.config['seed']}"
    versions = ", ".join(f"{k} {v}" for k, v in data.versions.items())
    status = data.summary.get("status") or "not ended"
    reason = data.summary.get("reason")
    line = f"{status}: {reason}" if reason else str(status)
    return template.substitute(
        title=html.escape(heading),
        heading=html.escape(heading),
        description=html.escape(str(data.config.get("description") or "")),
        versions=html.escape(f"Run {line}. {versions}"),
        notes="".join(f'<p class="note">{html.escape(note)}</p>' for note in data.notes),
        tiles="".join(_tiles(data)),
        field="".join(_figure(*picture, long=len(field) == 1) for picture in field),
        curves=(
            '<div class="narrow">' + "".join(_figure(*p) for p in curves) + "</div>"
            if curves
            else "<p>No stage was completed.</p>"
        ),
        table=_table(data),
        config=html.escape(config),
    )


def _figure(title: str, svg: str, *, long: bool = False) -> str:
    kind = ' class="long"' if long else ""
    return f"<figure{kind}><h3>{html.escape(title)}</h3>{svg}</figure>"


def _tiles(data: RunData) -> Iterator[str]:
    unit = f" {data.unit}" if data.unit else ""
    if data.truth is not None:
        error = rmspe(data.mean, data.truth, data.belief.observed)
        if error is not None:
            spread = float(np.std(data.truth))
            text = f"RMSPE, against the noise-free truth (field sd {spread:.3g})"
            yield _tile(f"{error:.3g}{unit}", text)
    observed = int(data.belief.observed.sum())
    yield _tile(f"{observed} of {data.topology.n}", "places observed")
    # What was driven, where the driver measured it; else what the plans said it would be.
    planned = sum(float(record.get("metres") or 0.0) for record in data.records)
    metres = float(data.records[-1].get("driven_metres", planned)) if data.records else 0.0
    yield _tile(f"{metres / 1000:.1f} km" if metres >= 1000 else f"{metres:.0f} m", "driven")
    scale, weight = _most_probable(data)
    yield _tile(scale, f"length-scale, weight {weight:.2f}")
    seconds = [float(r["plan_seconds"]) for r in data.records if r.get("plan_seconds") is not None]
    if seconds:
        text = f"median planning time (p99 {np.percentile(seconds, 99):.3f} s)"
        yield _tile(f"{np.median(seconds):.3f} s", text)
    gaps = [
        float(r["upper"]) - float(r["lower"])
        for r in data.records
        if isinstance(r.get("upper"), int | float) and isinstance(r.get("lower"), int | float)
    ]
    if gaps:
        yield _tile(f"{np.median(gaps):.3g}", "median gap of the bounds")


def _tile(figure: str, text: str) -> str:
    return f'<div class="tile"><b>{html.escape(figure)}</b><span>{html.escape(text)}</span></div>'


def _most_probable(data: RunData) -> tuple[str, float]:
    total: dict[tuple[float, ...], float] = {}
    for key, weight in zip(data.length_scales, data.belief.weights, strict=True):
        total[key] = total.get(key, 0.0) + float(weight)
    best, weight = max(total.items(), key=lambda item: item[1])
    names = getattr(data.topology, "feature_names", ())
    unit = " m" if names and set(names) <= {"x", "y"} else ""
    return " × ".join(f"{s:g}" for s in best) + unit, weight


_COLUMNS = (
    ("stage", "stage", "d"),
    ("place", "name", ""),
    ("reading", "value", ".2f"),
    ("RMSPE", "rmspe", ".3f"),
    ("lower", "lower", ".3f"),
    ("upper", "upper", ".3f"),
    ("expansions", "expanded", "d"),
    ("planning [s]", "plan_seconds", ".3f"),
    ("way planned [m]", "metres", ".0f"),
)


def _table(data: RunData) -> str:
    head = "".join(f"<th>{title}</th>" for title, _, _ in _COLUMNS)
    rows = [
        "<tr>" + "".join(f"<td>{_cell(r.get(key), form)}</td>" for _, key, form in _COLUMNS)
        for r in data.records
    ]
    return f"<table><tr>{head}</tr>{'</tr>'.join(rows)}{'</tr>' if rows else ''}</table>"


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        return html.escape(str(value))
    return format(value, form) if form != "d" else str(int(value))
