"""Page of a run: headline figures, tables, and the maps and charts of all steps."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gp_active_sensing.belief.mixture import most_probable
from gp_active_sensing.belief.prior import Log
from gp_active_sensing.kernels import NONE
from gp_active_sensing.planning.explain import called
from gp_active_sensing.records.event_lines import parse_events
from gp_active_sensing.report.facts import RunTotals, facts_of, headline, time_of
from gp_active_sensing.report.finer import finer_map
from gp_active_sensing.report.frame import PAGE, build_page, tile
from gp_active_sensing.report.payload import build_payload, floor_of, scale_labels, scale_unit
from gp_active_sensing.report.reconstruction import replay
from gp_active_sensing.report.source import RunData, load_run, section_of
from gp_active_sensing.report.steps import Reconstruction
from gp_active_sensing.util.files import write_whole
from gp_active_sensing.util.wording import describe_predictability, distance

MOST_BYTES = 5_000_000
"""Largest size of a page [bytes]. The page of a long run therefore shows fewer maps."""
ROWS = 1000
"""Largest number of rows in the stage table. A long run's table has evenly spread stages."""
SCRIPTS = (
    "base.js", "decode.js", "chart.js", "axes.js", "map.js", "field.js", "panels.js", "profile.js",
    "bars.js", "download.js", "quality.js", "page.js",
)  # fmt: skip
"""Names of the scripts in the order of execution."""


def write_report(run_dir: Path | str) -> Path:
    """Write ``report.html`` into a run directory and return its path.

    The page needs no network.

    Raises:
        RunError: `run_dir` is not a run directory, or the page cannot be written.
        ActiveSensingError: the map cannot be found or read.
    """
    data = load_run(Path(run_dir))
    looked = [data, *map(data.for_quantity, data.quantities[1:])]
    seen = [(each, replay(each)) for each in looked]
    finer = [finer_map(each.topology, steps.belief) for each, steps in seen]
    thin = 1
    text = _fill(seen, finer, thin)
    while len(text.encode("utf-8")) > MOST_BYTES and thin < len(seen[0][1].shown):
        thin *= 2
        text = _fill(seen, finer, thin)
    return write_whole(data.path / PAGE, text)


def _fill(seen: Sequence[tuple[RunData, Reconstruction]], finer: Sequence[Any], thin: int) -> str:
    data, done = seen[0]
    payload, *further = (
        build_payload(each, steps, thin) | {"finer": one}
        for (each, steps), one in zip(seen, finer, strict=True)
    )
    payload["further"] = [
        {k: v for k, v in one.items() if k not in ("places", "tracks")} for one in further
    ]
    tally = RunTotals.of(parse_events(data.events))
    return build_page(
        "run.html", SCRIPTS, payload,
        stages=stages_table(data), facts=facts_table(data, tally), config=config_text(data),
        **slots(data, done, payload, tally),
    )  # fmt: skip


def slots(
    data: RunData,
    done: Reconstruction,
    payload: Mapping[str, Any],
    tally: RunTotals,
    *,
    continues: bool = False,
) -> dict[str, str]:
    """Return the HTML texts above the maps by slot name, with the texts of the run escaped.

    `payload` comes from `build_payload`; its ``maps`` need only the keys ``steps`` and ``all``.
    `continues` is True while the run is not over.
    """
    name = str(data.config.get("name") or data.topology.name)
    otherwise = "policy not known" if done.by_stage else "readings only"
    planned = section_of(data.summary, "replay").get("mode") != "belief"
    heading = f"{name} · {(planned and data.policy) or otherwise}"
    if data.config.get("seed") is not None:
        heading += f" · seed {data.config['seed']}"
    status = data.summary.get("status") or "not ended"
    reason = data.summary.get("reason")
    state = f"Run {status}: {reason}" if reason else f"Run {status}"
    messages = [*_notes(data, done, payload, continues)]
    if count := tally.set_aside:
        what = "reading was" if count == 1 else "readings were"
        messages.append(
            f"{count} {what} set aside, far from the prediction; the table Mission lists them"
        )
    notes = (f'<p class="note">{html.escape(n)}</p>' for n in messages)
    return {
        "title": html.escape(heading),
        "heading": html.escape(heading),
        "description": html.escape(str(data.config.get("description") or "")),
        "status": html.escape(". ".join(filter(None, (state, headline(data, tally))))),
        "notes": "".join(notes),
        "tiles": "".join(_tiles(data, done, payload)),
    }


def config_text(data: RunData) -> str:
    """Return the configuration as HTML."""
    config = yaml.safe_dump(dict(data.config), sort_keys=False, allow_unicode=True)
    return html.escape(config)


def facts_table(data: RunData, tally: RunTotals) -> str:
    """Return the run's facts as an HTML table."""
    rows = "".join(
        f'<tr class="fact"><th class="text">{html.escape(what)}</th>'
        f'<td class="wrap">{html.escape(fact)}</td></tr>'
        for what, fact in facts_of(data, tally)
    )
    table = f'<table class="facts">{rows}</table>{_gated(tally)}'
    return f"<details><summary>Mission</summary>{table}</details>" if rows else ""


GATED = 50
"""Largest number of rows in the table of readings that were set aside as outliers."""


def _gated(tally: RunTotals) -> str:
    gated = tally.outliers(GATED)
    if not gated:
        return ""
    rows = "".join(
        f'<tr><td class="text">{html.escape(time_of(event.reading.stamp_ns))}</td>'
        f"<td>{_cell(event.reading.value, '.4g')}</td><td>{_cell(event.off, '.1f')}</td></tr>"
        for event in gated
    )
    title = "Readings set aside" + (
        f" (the {GATED} farthest from their predictions)" if tally.set_aside > GATED else ""
    )
    head = '<tr><th class="text">time</th><th>reading</th><th>standard deviations off</th></tr>'
    table = f'<table class="gated">{head}{rows}</table>'
    return f'<p class="more">{title}</p><div class="scroll">{table}</div>'


def _notes(
    data: RunData, done: Reconstruction, payload: Mapping[str, Any], continues: bool
) -> Iterator[str]:
    yield from data.notes
    if (share := _explained(data, done)) is not None and share <= 0.0:
        yield describe_predictability(share, simulated=data.truth is not None)
    if done.unused:
        yield (
            f"readings of the journal that could not be used: {done.unused} (not finite, out of "
            "range, or not on the map)"
        )
    maps = payload["maps"]
    if len(maps["steps"]) < maps["all"]:
        yield (
            f"to keep the page small, {len(maps['steps'])} of the {maps['all']} steps have maps of "
            "their own; the other steps show the map of an earlier step"
        )
    if continues:
        pass
    elif not done.by_stage:
        yield "nothing was planned in this run"
    elif not data.records:
        yield "no stage was completed"
    yield from _replay_notes(section_of(data.summary, "replay"))


def _explained(data: RunData, done: Reconstruction) -> float | None:
    """Return the leave-one-out R² of the readings, from the summary if available."""
    if "explained" in data.summary:
        share = data.summary["explained"]
        return float(share) if isinstance(share, int | float) else None
    found = done.belief.leave_one_out()
    return None if found is None else found.explained


def _replay_notes(replayed: Mapping[str, Any]) -> Iterator[str]:
    if damage := replayed.get("damage"):
        lost = replayed.get("lost")
        count = "an unknown number of messages" if lost is None else f"{lost} messages"
        yield f"the bag was salvaged, {count} lost: {'; '.join(map(str, damage))}"
    if found := section_of(replayed, "comparison"):
        ahead = found.get("planned_ahead")
        to_the_bit = found.get("decisions_to_the_bit", "unknown")
        yield (
            f"a recorded mission, computed again: {found['decisions']} decisions, "
            f"{found['decisions_equal']} equal ({to_the_bit} to the bit); "
            f"{f'{ahead} more were planned ahead and are not compared; ' if ahead else ''}"
            f"{found['readings']} readings, {found['readings_equal']} equal"
        )


def _tiles(data: RunData, done: Reconstruction, payload: Mapping[str, Any]) -> Iterator[str]:
    unit = f" {data.symbol}" if data.unit else ""
    of = f" of {data.quantities[0]}" if len(data.quantities) > 1 else ""
    last = done.steps[-1]
    rmspe, coverage = last.scores["rmspe"], last.scores["coverage_90"]
    if rmspe is not None and done.truth is not None:
        spread = float(np.std(done.truth[-1]))
        text = (
            f"error{of} at unread places (RMSPE); standard deviation of the true field: "
            f"{spread:.3g}{unit}"
        )
        yield tile(f"{rmspe:.3g}{unit}", text)
    yield from _promise_tiles(data, done, unit, of)
    if coverage is not None and done.truth is not None:
        text = f"of the true values{of} at unread places lie in the 90 % intervals"
        readings = last.scores["reading_coverage_90"]
        text += "" if readings is None else f", {100.0 * readings:.0f} % of new readings"
        yield tile(f"{100.0 * coverage:.0f} %", text)
    yield from _search_tiles(data, unit)
    yield tile(f"{last.observed} of {data.topology.n}", "places read")
    if (share := _explained(data, done)) is not None and share > 0.0:
        yield tile(f"R\u00b2 = {share:.2f}", "how well neighbouring readings predict each other")
    metres = last.metres
    if last.plan is not None and last.plan.waypoint is None:
        metres = float(data.summary.get("metres") or metres)  # with the route to the end place
    if data.records:
        yield tile(distance(metres), "driven")
    yield from _belief_tiles(data, done)
    seconds = [float(r["plan_seconds"]) for r in data.records if r.get("plan_seconds") is not None]
    if seconds:
        text = f"median planning time (99th percentile {_time(float(np.percentile(seconds, 99)))})"
        yield tile(_time(float(np.median(seconds))), text)
    replayed = section_of(data.summary, "replay")
    nats = section_of(replayed, "information")
    if nats.get("stages") and replayed.get("mode") == "decisions":
        text = f"information of the planner's places; of the probe's: {nats['went']:.2f} nat"
        yield tile(f"{nats['planned']:.2f} nat", text)
    gaps = [step.plan.gap for step in done.steps if step.plan is not None and step.plan.candidates]
    if any(gap > 0.0 for gap in gaps):
        text = f"{np.median(gaps):.3g} {payload['valueUnit']}".rstrip()
        yield tile(text, "median difference between the bounds of a decision")


def _promise_tiles(data: RunData, done: Reconstruction, unit: str, of: str) -> Iterator[str]:
    promised = done.steps[-1].promised
    if promised is None:
        return
    text = f"expected error of the map{of}"
    if (floor := floor_of(data, done)) is not None:
        least, places = floor
        text += f"; lower bound for any route with {places} readings: {least:.3g}{unit}"
    yield tile(f"{promised:.3g}{unit}", text)


def _search_tiles(data: RunData, unit: str) -> Iterator[str]:
    regret = section_of(data.summary, "regret")
    if not regret:
        return
    end = "lowest" if regret["objective"] == "minimise" else "highest"
    best = f"{end} of all"
    if regret["recommended"] != regret["best"]:
        best = f"{end} is {called(str(regret['best']))} with {regret['best_value']:.4g}{unit}"
    text = f"at {called(str(regret['recommended']))}, the best place found; {best}"
    yield tile(f"{regret['recommended_value']:.4g}{unit}", text)
    text = "regret, mean over the stages"
    if regret.get("bound") is not None:
        text += f"; bound {float(regret['bound']) / regret['decisions']:.3g}{unit}"
    yield tile(f"{regret['average']:.3g}{unit}", text)


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.2g} ms" if seconds < 0.01 else f"{seconds:.3f} s"


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _belief_tiles(data: RunData, done: Reconstruction) -> Iterator[str]:
    candidates = zip(done.belief.hyperparameters, done.belief.weights.tolist(), strict=True)
    best = most_probable((h.kernel, h.length_scales, weight) for h, weight in candidates)
    if best.kernel:
        what = "no spatial correlation" if best.kernel == NONE else "kernel"
        yield tile(best.kernel, f"{what}, probability {_percent(best.kernel_weight)}")
    if best.kernel != NONE:
        (label,) = scale_labels(scale_unit(data), [best.length_scale])
        text = "length-scale with this kernel" if best.kernel else "length-scale"
        yield tile(label, f"{text}, probability {_percent(best.weight)}")
    if isinstance(transform := done.belief.transform, Log):
        offset = f"{transform.offset:+.3g}" if transform.offset else ""
        yield tile(
            "logarithm", f"of the readings{offset} is mapped, since it fits the kernel better"
        )


_COLUMNS = (
    ("stage", "stage", "d"),
    ("place", "name", ""),
    ("reading", "value", ".2f"),
    ("expected error", "promised_error", ".3f"),
    ("RMSPE", "rmspe", ".3f"),
    ("NLPD", "nlpd", ".3f"),
    ("truth in 90 %", "coverage_90", ".3f"),
    ("readings in 90 %", "reading_coverage_90", ".3f"),
    ("regret", "regret", ".3f"),
    ("lower", "lower", ".3f"),
    ("upper", "upper", ".3f"),
    ("expansions", "expanded", "d"),
    ("planning [s]", "plan_seconds", ".3f"),
    ("way planned [m]", "metres", ".0f"),
)


_FOLLOWED = (
    ("information at the planner's place [nat]", "information.planned", ".3f"),
    ("probe went to", "went_name", ""),
    ("information there [nat]", "information.went", ".3f"),
)
"""Further columns of the stage table (title, record key, format) for a freely moving probe."""


def stages_table(data: RunData) -> str:
    """Return the stage table as HTML; "" without stages."""
    count = len(data.records)
    if not count:
        return ""
    rows = np.unique(np.linspace(0, count - 1, min(count, ROWS)).round().astype(int)).tolist()
    what = "Stages" if any("plan_seconds" in record for record in data.records) else "Places"
    title = what if len(rows) == count else f"{what} ({len(rows)} of {count}, evenly spread)"
    table = _table([data.records[row] for row in rows])
    return f'<details><summary>{title}</summary><div class="scroll">{table}</div></details>'


def _table(records: Sequence[Any]) -> str:
    optional = ("promised_error", "regret", "coverage_90", "reading_coverage_90")
    left_out = {key for key in optional if all(record.get(key) is None for record in records)}
    if not any(record.get("candidates") for record in records):  # bounds need candidates
        left_out |= {"lower", "upper"}
    columns = [column for column in _COLUMNS if column[1] not in left_out]
    if any("went" in record for record in records):
        columns += _FOLLOWED
    if any("probe" in record for record in records):
        columns.insert(1, ("probe", "probe", ""))
    head = "".join(f"<th{_text(form)}>{title}</th>" for title, _, form in columns)
    rows = [
        "".join(f"<td{_text(form)}>{_cell(_of(r, key), form)}</td>" for _, key, form in columns)
        for r in records
    ]
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _of(record: Any, key: str) -> Any:
    """Return a value of a record by a path such as ``information.planned``."""
    value = record
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _text(form: str) -> str:
    return "" if form else ' class="text"'


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        return html.escape(str(value))
    return format(value, form) if form != "d" else str(int(value))
