"""Progress and results of a run and of a replay: a bar on a terminal, a line a stage elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gp_active_sensing.belief.mixture import most_probable
from gp_active_sensing.errors import one_line
from gp_active_sensing.kernels import NONE
from gp_active_sensing.planning.explain import gap_of
from gp_active_sensing.util.wording import PredictabilityMonitor, describe_predictability, promised

if TYPE_CHECKING:
    from rich.console import Console

Show = Callable[[Mapping[str, Any]], None]

_LATENCIES = (
    ("reading_to_belief", "reading in -> belief updated"),
    ("arrival_to_waypoint", "arrival -> next waypoint out"),
)


def stage_line(
    record: Mapping[str, Any],
    *,
    total: int | None = None,
    unit: str = "",
    scale_unit: str = "",
    policy: str = "",
) -> str:
    """Return one line for a stage; which policy it is says whether there are bounds to show."""
    stage = f"{record['stage']:>3}"
    if total is not None:  # places may be read on the way, and again: stages are not readings then
        visits = record.get("visits")
        stage += f"/{total}" if visits is None else f" ({visits:>{len(str(total))}}/{total} read)"
    value = record["value"]
    reading = "no reading, set aside" if value is None else f"read {value:.2f}{_unit(unit)}"
    whose = [str(record["probe"])] if record.get("probe") else []
    parts = [f"stage {stage}", *whose, f"{record['name']:<10}", reading]
    if scales := record.get("length_scales"):
        kernels = record.get("kernels") or [""] * len(scales)
        candidates = zip(kernels, scales, record["weights"], strict=True)
        found = _believed(candidates, scale_unit)
        parts += [f"{what} {text} ({100 * weight:.0f} %)" for what, text, weight in found]
    gap = gap_of(policy, float(record["lower"]), float(record["upper"]))
    parts += [] if gap is None else [f"gap {gap:.3f}"]
    parts.append(f"planned in {float(record['plan_seconds']):.3f} s")
    if record.get("promised_error") is not None:
        parts.append(f"promised {record['promised_error']:.2f}{_unit(unit)}")
    if record.get("rmspe") is not None:
        parts.append(f"RMSPE {record['rmspe']:.2f}{_unit(unit)}")
    if record.get("regret") is not None:
        parts.append(f"regret {record['regret']:.2f}{_unit(unit)}")
    return "  ".join(parts)


def _believed(
    candidates: Iterable[tuple[str, Sequence[float], float]], scale_unit: str
) -> list[tuple[str, str, float]]:
    """Return the most probable kernel, where there are several, and its length-scale, with weights.

    Candidates that differ in signal or noise only are added up.
    """
    best = most_probable(candidates)
    if best.kernel == NONE:
        return [("kernel", "none, places do not predict each other", best.kernel_weight)]
    kernel = [("kernel", best.kernel, best.kernel_weight)] if best.kernel else []
    scales = " × ".join(f"{scale:.4g}" for scale in best.length_scale)
    return [*kernel, ("length-scale", f"{scales}{_unit(scale_unit)}", best.weight)]


def summary_lines(summary: Mapping[str, Any], *, weighted: bool = False) -> list[str]:
    """Return a few lines for the end of a run from ``summary.json``; {} = it has none.

    The map of the run is `weighted` if `map.weights` is set.
    """
    if not summary:
        return ["There is no summary: the run did not get to its end."]
    unit = _unit(str(summary["unit"]))
    head = f"{summary['scenario']} with {summary['policy']}, seed {summary['seed']}: "
    lines = [head + ", ".join(filter(None, (summary["status"], summary["reason"])))]

    def add(what: str, text: str) -> None:
        lines.append(f"  {what:<17} {text}")

    visits = f"({summary['readings']} readings, {summary['missed']} visits without one)"
    add("places observed", f"{summary['observed']} of {summary['places']} {visits}")
    if summary["rejected"]:
        why = ", ".join(f"{word} {n}" for word, n in summary["rejected_by_reason"].items())
        add("not used", f"{summary['rejected']} messages ({why})")
    add("driven", _driven_line(summary))
    if summary.get("promised_error") is not None:
        add("promised error", promised(summary))
        if summary.get("rmse") is not None:
            over = "all places, by map.weights" if weighted else "all places"
            add("actual error", f"{summary['rmse']:.3g}{unit} ({over})")
    if summary["rmspe"] is not None:
        add("RMSPE", f"{summary['rmspe']:.3f}{unit} (against {summary['errors_against']})")
        add("NLPD", f"{summary['nlpd']:.3f} nat")
    if summary.get("coverage_90") is not None:
        add("intervals", _interval_line(summary))
    if summary.get("explained") is not None:
        add("readings", describe_predictability(summary["explained"]))
    for name, each in (summary.get("quantities") or {}).items():
        add(name, _quantity_line(each))
    lines += _regret_lines(summary.get("regret") or {}, unit)
    if scales := summary["length_scales"]:
        weighed = ((c.get("kernel", ""), c["length_scale"], c["weight"]) for c in scales)
        for what, text, weight in _believed(weighed, str(summary.get("scale_unit", ""))):
            add(what, f"{text} with weight {weight:.2f}")
    if expert := summary.get("expert"):
        add("expert", _expert_line(expert))
    if planning := summary["planning"]:
        median, p99 = planning["median_seconds"], planning["p99_seconds"]
        add("planning", f"median {median:.3f} s, p99 {p99:.3f} s a stage")
    for key, what in _LATENCIES:
        took = summary["latency"].get(key) or {}
        if took.get("median_ms") is not None:
            add(
                "latency", f"{what}: median {took['median_ms']:.1f} ms, p99 {took['p99_ms']:.1f} ms"
            )
    if summary["set_aside"]:
        add("set aside", ", ".join(summary["set_aside"]))
    return lines


def _quantity_line(each: Mapping[str, Any]) -> str:
    unit = _unit(str(each["unit"]))
    parts = [f"{each['observed']} places, {each['readings']} readings"]
    if each["promised_error"] is not None:
        parts.append(f"promised error {each['promised_error']:.3g}{unit}")
    if each.get("rmse") is not None:
        parts.append(f"actual error {each['rmse']:.3g}{unit}")
    if each.get("link_probability") is not None:
        parts.append(f"linked with a probability of {100.0 * each['link_probability']:.0f} %")
    return ", ".join(parts)


def _driven_line(summary: Mapping[str, Any]) -> str:
    probes = summary.get("probes") or []
    seconds = max([probe["seconds"] for probe in probes], default=summary["seconds"])
    text = f"{summary['metres']:.0f} m in {seconds:.0f} s"
    each = ", ".join(f"{probe['name']} {probe['metres']:.0f} m" for probe in probes)
    return f"{text} ({each})" if each else text


def _interval_line(summary: Mapping[str, Any]) -> str:
    levels = (50, 90, 95)

    def shares(kind: str) -> str:
        return "/".join(f"{100.0 * summary[f'{kind}_{level}']:.0f}" for level in levels)

    text = f"50/90/95 % hold {shares('coverage')} % of the true values"
    if summary.get("reading_coverage_90") is not None:
        text += f", {shares('reading_coverage')} % of new readings"
    return text


def _expert_line(expert: Mapping[str, Any]) -> str:
    parts = [f"{expert['answered']} of {expert['asked']} places asked for answered in time"]
    if expert["late"]:
        parts.append(f"{expert['late']} late")
    if expert["rejected"]:
        parts.append(", ".join(f"{word} {n}" for word, n in expert["rejected"].items()))
    return ", ".join(parts)


def _regret_lines(regret: Mapping[str, Any], unit: str) -> list[str]:
    if not regret:
        return []
    decisions = int(regret["decisions"])
    average = f"{regret['average']:.3g}{unit} on average over {decisions} stages"
    if regret["bound"] is not None:
        average += f", bound {regret['bound'] / decisions:.3g}{unit}"
    end = "lowest" if regret["objective"] == "minimise" else "highest"
    found = f"{regret['recommended']}: {regret['recommended_value']:.4g}{unit}"
    if regret["recommended"] == regret["best"]:
        found += f", the {end} of all"
    else:
        found += f"; the {end} is {regret['best']} with {regret['best_value']:.4g}{unit}"
    return [f"  {'regret':<17} {average}", f"  {'found':<17} {found}"]


SLOW = 2.0
"""Time of a decision from which on it is shown that one is being taken [s]."""


@contextmanager
def show_stages(
    console: Console,
    *,
    total: int | None,
    unit: str = "",
    scale_unit: str = "",
    policy: str = "",
) -> Iterator[Show]:
    """Yield a function that shows a stage's record as it comes: on a terminal with a progress bar.

    Where a decision takes longer than `SLOW` seconds, the bar shows for how long it has been taken.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class Deciding(ProgressColumn):
        def render(self, task: Task) -> Text:
            seconds = task.get_time() - float(task.fields["since"])
            return Text(f"deciding for {seconds:.0f} s" if seconds > SLOW else "")

    monitor, bar = PredictabilityMonitor(), console.is_terminal
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        Deciding(),
    )
    with Progress(*columns, console=console, disable=not bar) as progress:
        task = progress.add_task("sensing", total=total, since=progress.get_time())

        def show(record: Mapping[str, Any]) -> None:
            shown = None if bar else total
            words = {"unit": unit, "scale_unit": scale_unit, "policy": policy}
            line = stage_line(record, total=shown, **words)
            progress.console.out(one_line(line), highlight=False)
            if turn := monitor.message(record):
                progress.console.out(turn, highlight=False)
            done = int(record.get("visits", record["observed"]))
            progress.update(task, completed=done, since=progress.get_time())

        yield show


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""


_HEADS = {
    "again": "The mission once more: its decisions, computed again.",
    "decisions": "What the planner would have chosen, and where the probe went:",
}


class ReplayDisplay:
    """Shows a replay: a line for each record; on a terminal a bar as well.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)

    def __enter__(self) -> ReplayDisplay:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def begin(self, mode: str, total: int) -> Callable[[int], None]:
        """Show what is replayed; return a callback for the number of messages read."""
        if mode in _HEADS:
            self._echo(_HEADS[mode])
            self._echo(f"{'stage':>5}  {'planner':<14}{'nat':>8}  {'probe':<14}{'nat':>8}  reading")
        task = self._progress.add_task("replaying", total=total)
        return lambda read: self._progress.update(task, completed=read)

    def record(self, record: Mapping[str, Any]) -> None:
        """Show the record of a stage."""
        self._echo(_decision_line(record))

    def _echo(self, text: str) -> None:
        self._progress.console.out(one_line(text), highlight=False)


def _decision_line(record: Mapping[str, Any]) -> str:
    information = record.get("information") or {}
    went = record.get("went_name")
    value = record["value"]
    return (
        f"{record['stage']:>5}  {_cut(record['name']):<14}{_nat(information.get('planned'))}  "
        f"{'–' if went is None else _cut(went):<14}{_nat(information.get('went'))}  "
        + ("none" if value is None else f"{value:.2f}")
    )


def _cut(name: str) -> str:
    return name if len(name) <= 13 else f"{name[:12]}…"


def _nat(value: float | None) -> str:
    return f"{'–':>8}" if value is None else f"{value:>8.3f}"


def end_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return a few lines for the end of a replay."""
    lines = summary_lines(summary)
    done = summary["replay"]

    def add(what: str, text: str) -> None:
        lines.append(f"  {what:<17} {text}")

    read = f"{done['messages']} messages read"
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
        decisions = f"{comparison['decisions']} decisions, {equal} equal ({exact} to the bit)"
        readings = f"{comparison['readings']} readings, {comparison['readings_equal']} equal"
        add("compared", f"{decisions}; {readings}")
        for key, what in (
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
            f"{gained['stages']} stages ({gained['agreed']} times the same place)",
        )
    return lines
