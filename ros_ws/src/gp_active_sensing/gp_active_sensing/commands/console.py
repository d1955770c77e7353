"""Console output of ``run`` and ``replay``: progress, stages and summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gp_active_sensing.belief.mixture import most_probable
from gp_active_sensing.errors import one_line
from gp_active_sensing.kernels import NONE
from gp_active_sensing.report.payload import scale_labels
from gp_active_sensing.util.wording import (
    brief,
    counted,
    describe_predictability,
    distance,
    fixed,
    in_words,
    promised,
)

if TYPE_CHECKING:
    from rich.console import Console

    from gp_active_sensing.sim.scenario import Scenario
    from gp_active_sensing.types import Plan

Show = Callable[[Mapping[str, Any]], None]
ShowHome = Callable[["Plan", str], None]
Begin = Callable[[str, int], Callable[[int], None]]

WIDTH = 120
"""Largest number of characters in the line of a stage."""
SLOW = 2.0
"""The console shows planning times above this limit [s]."""

_LATENCIES = (
    ("reading_to_belief", "reading in -> belief updated"),
    ("arrival_to_waypoint", "arrival -> next waypoint out"),
)


_ERRORS = (("promised_error", "expected error"), ("rmspe", "RMSPE"), ("regret", "regret"))
"""Key of each error in the record of a stage, and its label in the console line."""


def home_line(plan: Plan, probe: str = "") -> str:
    """Return the line of a drive to the end place."""
    whose = f" of {probe}" if probe else ""
    way = f"{distance(plan.cost.metres)} in {plan.cost.seconds:.0f} s"
    return f"way home{whose}: {way}, since {plan.reason}"


def stage_line(record: Mapping[str, Any], scenario: Scenario) -> str:
    """Return the console line of a stage, with at most `WIDTH` characters.

    The reading is that of the main quantity. Its number of decimals suits the sensor's noise: 2 for
    a standard deviation of 0.05. Errors have the unit of the reading; an unknown error is a dash. A
    part of the line that would exceed `WIDTH` is left out.
    """
    used = [
        f"{done:>{len(f'{total:.0f}')}.0f}/{total:.0f} {unit}"
        for done, total, unit in _used(record, scenario)
    ]
    whose = [str(record["probe"])] if record.get("probe") else []
    value = record["value"]
    unit = _unit(scenario.field.unit)
    reading = f"{'no reading':<{11 + len(unit)}}"
    if value is not None:
        reading = f"read {_value(value, scenario.sensor.noise_std):>6}{unit}"
    if scenario.main:
        reading = f"{scenario.main} {reading}"
    line = "  ".join(
        [f"stage {record['stage']:>3}", *used, *whose, f"{_cut(record['name']):<8}", reading]
    )
    parts = [
        f"{what} {'–' if record[key] is None else brief(record[key]):>6}"
        for key, what in _ERRORS
        if key in record and (record[key] is not None or key == "promised_error")
    ]
    if (seconds := float(record["plan_seconds"])) > SLOW:
        parts.append(f"planned in {seconds:.0f} s")
    if scales := record.get("length_scales"):
        kernels = record.get("kernels") or [""] * len(scales)
        candidates = zip(kernels, scales, record["weights"], strict=True)
        what, text, _ = _believed(candidates, scenario.scale_unit)[-1]
        parts.append(f"{what} {text}")
    for part in parts:
        line += f"  {part}" if len(line) + 2 + len(part) <= WIDTH else ""
    return line


def _used(record: Mapping[str, Any], scenario: Scenario) -> list[tuple[float, float, str]]:
    """Return (used amount, total, unit) for each limit of the budget."""
    budget = scenario.budget
    limits = (
        (record.get("visits", record["observed"]), budget.readings, "places"),
        (record.get("driven_metres", 0.0), budget.metres, "m"),
        (record.get("driven_seconds", 0.0), budget.seconds, "s"),
    )
    return [(done, total, unit) for done, total, unit in limits if total is not None]


def _value(value: float, noise_std: float) -> str:
    if noise_std <= 0.0:
        return brief(value)
    return fixed(value, min(6, max(0, math.ceil(-math.log10(noise_std)))))


def _believed(
    candidates: Iterable[tuple[str, Sequence[float], float]], scale_unit: str
) -> list[tuple[str, str, float]]:
    """Return (label, text, weight) tuples for the most probable kernel and length-scale."""
    best = most_probable(candidates)
    if best.kernel == NONE:
        return [("kernel", "none, places do not predict each other", best.kernel_weight)]
    kernel = [("kernel", best.kernel, best.kernel_weight)] if best.kernel else []
    (scales,) = scale_labels(scale_unit, [best.length_scale])
    return [*kernel, ("length-scale", scales, best.weight)]


def summary_lines(
    summary: Mapping[str, Any], main: str = "", *, weighted: bool = False
) -> list[str]:
    """Return the lines for the end of a run.

    `summary` is the content of ``summary.json``; {} = no such file. `main` is the name of the
    main quantity if there are several. `weighted` is True if places have weights (`map.weights`).
    """
    if not summary:
        return ["There is no summary: the run did not get to its end."]
    unit = _unit(str(summary["unit"]))
    planned = (summary.get("replay") or {}).get("mode") != "belief"
    policy = f" with {summary['policy']}" if planned else ""
    head = f"{summary['scenario']}{policy}, seed {summary['seed']}: "
    lines = [head + ", ".join(filter(None, (summary["status"], summary["reason"])))]

    def add(what: str, text: str) -> None:
        lines.append(f"  {what:<17} {text}")

    if summary["rejected"]:
        why = in_words(summary["rejected_by_reason"])
        add("not used", f"{counted(summary['rejected'], 'message')} ({why})")
    add("driven", _driven_line(summary))
    further, simulated = summary.get("quantities") or {}, bool(summary["errors_against"])
    for name, each in {"": summary, **further}.items():
        if further:
            add("quantity", name or main or "main")
        of_all = {"places": summary["places"], "errors_against": summary["errors_against"], **each}
        for what, text in _quality_lines(of_all, weighted=weighted, simulated=simulated):
            add(what, text)
    lines += _regret_lines(summary.get("regret") or {}, unit)
    if scales := summary["length_scales"]:
        weighed = ((c.get("kernel", ""), c["length_scale"], c["weight"]) for c in scales)
        of = f" of {main}" if further and main else ""
        for what, text, weight in _believed(weighed, str(summary.get("scale_unit", ""))):
            add(what, f"{text}{of}, probability {100.0 * weight:.0f} %")
    if expert := summary.get("expert"):
        add("expert", _expert_line(expert))
    if planning := summary["planning"]:
        median, p99 = planning["median_seconds"], planning["p99_seconds"]
        add("planning", f"median {median:.3f} s a stage, 99 % of the stages below {p99:.3f} s")
    for key, what in _LATENCIES:
        took = summary["latency"].get(key) or {}
        if took.get("median_ms") is not None:
            add(
                "latency", f"{what}: median {took['median_ms']:.1f} ms, p99 {took['p99_ms']:.1f} ms"
            )
    if summary["set_aside"]:
        add("set aside", ", ".join(summary["set_aside"]))
    return lines


def _quality_lines(
    each: Mapping[str, Any], *, weighted: bool, simulated: bool
) -> Iterator[tuple[str, str]]:
    """Yield the label and text of each line about the map of one quantity."""
    unit = _unit(str(each["unit"]))
    read = counted(each["readings"], "reading")
    if "missed" in each:
        read += f", {counted(each['missed'], 'visit')} without one"
    yield "places read", f"{each['observed']} of {each['places']} ({read})"
    if each.get("link_probability") is not None:
        yield "linked", f"with a probability of {100.0 * each['link_probability']:.0f} %"
    if each.get("promised_error") is not None:
        yield "expected error", promised(each)
    if each.get("promised_error") is not None and each.get("rmse") is not None:
        over = "all places, by map.weights" if weighted else "all places"
        yield "actual error", f"{each['rmse']:.3g}{unit} over {over}"
    if each.get("rmspe") is not None:
        yield "RMSPE", f"{each['rmspe']:.3g}{unit} against {each['errors_against']}"
        yield "log loss", f"{each['nlpd']:.2f} nat (NLPD; smaller is better)"
    if each.get("coverage_90") is not None:
        yield "intervals", _interval_line(each)
    if each.get("explained") is not None:
        yield "readings", describe_predictability(each["explained"], simulated=simulated)


def _driven_line(summary: Mapping[str, Any]) -> str:
    probes = summary.get("probes") or []
    seconds = max([probe["seconds"] for probe in probes], default=summary["seconds"])
    text = f"{distance(summary['metres'])} in {seconds:.0f} s"
    each = ", ".join(f"{probe['name']} {distance(probe['metres'])}" for probe in probes)
    return f"{text} ({each})" if each else text


def _interval_line(summary: Mapping[str, Any]) -> str:
    levels = (50, 90, 95)

    def shares(kind: str) -> str:
        return "/".join(f"{100.0 * summary[f'{kind}_{level}']:.0f}" for level in levels)

    text = f"the 50/90/95 % intervals contain {shares('coverage')} % of the true values"
    if summary.get("reading_coverage_90") is not None:
        text += f", {shares('reading_coverage')} % of new readings"
    return text


def _expert_line(expert: Mapping[str, Any]) -> str:
    parts = [f"{expert['answered']} of {expert['asked']} places asked for answered in time"]
    if expert["late"]:
        parts.append(f"{expert['late']} late")
    if expert["rejected"]:
        parts.append(in_words(expert["rejected"]))
    return ", ".join(parts)


def _regret_lines(regret: Mapping[str, Any], unit: str) -> list[str]:
    if not regret:
        return []
    decisions = int(regret["decisions"])
    average = f"{regret['average']:.3g}{unit} on average over {counted(decisions, 'stage')}"
    if regret["bound"] is not None:
        average += f", bound {regret['bound'] / decisions:.3g}{unit}"
    end = "lowest" if regret["objective"] == "minimise" else "highest"
    found = f"{regret['recommended']}: {regret['recommended_value']:.4g}{unit}"
    if regret["recommended"] == regret["best"]:
        found += f", the {end} of all"
    else:
        found += f"; the {end} is {regret['best']} with {regret['best_value']:.4g}{unit}"
    return [f"  {'regret':<17} {average}", f"  {'found':<17} {found}"]


@contextmanager
def show_stages(console: Console, scenario: Scenario) -> Iterator[tuple[Show, ShowHome]]:
    """Yield two functions, which show the record of a stage and the drive to the end place."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    used_column = TextColumn("{task.fields[used]}")
    columns = (TextColumn("sensing"), BarColumn(), used_column, TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None, used="")

        def show(record: Mapping[str, Any]) -> None:
            progress.console.out(one_line(stage_line(record, scenario)), highlight=False)
            share, used = progress_of(record, scenario)
            total = None if share is None else 1.0
            progress.update(task, completed=share or 0.0, total=total, used=used)

        def show_home(plan: Plan, probe: str) -> None:
            progress.console.out(one_line(home_line(plan, probe)), highlight=False)

        yield show, show_home


def progress_of(record: Mapping[str, Any], scenario: Scenario) -> tuple[float | None, str]:
    """Return the used fraction of the budget, and the used amounts as text.

    The fraction is the largest over all limits of the budget; None = the budget has no limit.
    """
    used = _used(record, scenario)
    texts = [f"{done:.0f}/{total:.0f} {unit}" for done, total, unit in used]
    share = max((min(1.0, done / total) for done, total, _ in used), default=None)
    return share, ", ".join(texts) or counted(record["observed"], "place")


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""


_HEADS = {
    "again": "The recorded mission, with its decisions computed again:",
    "decisions": "The planner's choice at each stage, and the place where the robot went:",
}


@contextmanager
def show_replay(console: Console) -> Iterator[tuple[Begin, Show]]:
    """Yield two functions: one begins the display of a replay, the other shows a stage's record.

    The first function takes the kind of the replay and the number of messages. It returns a
    callback for the number of messages read so far.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:

        def echo(text: str) -> None:
            progress.console.out(one_line(text), highlight=False)

        def begin(mode: str, total: int) -> Callable[[int], None]:
            if mode in _HEADS:
                echo(_HEADS[mode])
                echo(f"{'stage':>5}  {'planner':<14}{'nat':>8}  {'probe':<14}{'nat':>8}  reading")
            task = progress.add_task("replaying", total=total)
            return lambda read: progress.update(task, completed=read)

        yield begin, lambda record: echo(_decision_line(record))


def _decision_line(record: Mapping[str, Any]) -> str:
    information = record.get("information") or {}
    went = record.get("went_name")
    value = record["value"]
    return (
        f"{record['stage']:>5}  {_cut(record['name']):<14}{_nat(information.get('planned'))}  "
        f"{'–' if went is None else _cut(went):<14}{_nat(information.get('went'))}  "
        + ("none" if value is None else brief(value))
    )


def _cut(name: str) -> str:
    return name if len(name) <= 13 else f"{name[:12]}…"


def _nat(value: float | None) -> str:
    return f"{'–':>8}" if value is None else f"{value:>8.3f}"


def end_lines(summary: Mapping[str, Any], main: str = "") -> list[str]:
    """Return the lines for the end of a replay, see `summary_lines`."""
    lines = summary_lines(summary, main)
    done = summary["replay"]

    def add(what: str, text: str) -> None:
        lines.append(f"  {what:<17} {text}")

    read = f"{counted(done['messages'], 'message')} read"
    if unreadable := sum(done["unreadable"].values()):
        read += f", {unreadable} of them could not be decoded"
    if ignored := done.get("orientations_ignored"):
        read += f", {ignored} poses without a usable quaternion"
    add("bag", f"{done['bag']}: {read}")
    if done["damage"]:
        lost = "nobody knows how many are" if done["lost"] is None else f"{done['lost']} are"
        add("salvaged", f"{'; '.join(done['damage'])}; {lost} lost")
    comparison = done.get("comparison")
    if comparison is not None:
        equal, exact = comparison["decisions_equal"], comparison["decisions_to_the_bit"]
        decisions = (
            f"{counted(comparison['decisions'], 'decision')}, {equal} equal ({exact} to the bit)"
        )
        readings = (
            f"{counted(comparison['readings'], 'reading')}, {comparison['readings_equal']} equal"
        )
        add("compared", f"{decisions}; {readings}")
        for key, what in (
            ("planned_ahead", "more decisions were planned ahead and are not compared"),
            ("readings_extra", "readings used that were not recorded"),
            ("frames_lost", "parts of the journal are not in the bag"),
        ):
            if comparison[key]:
                add("", f"{comparison[key]} {what}")
        lines += [f"    {text}" for text in comparison["differences"]]
    gained = done.get("information")
    if gained is not None and gained["stages"]:
        add(
            "information",
            f"planner's places {gained['planned']:.2f} nat, probe's {gained['went']:.2f} nat, over "
            f"{counted(gained['stages'], 'stage')} ({gained['agreed']} times the same place)",
        )
    return lines
