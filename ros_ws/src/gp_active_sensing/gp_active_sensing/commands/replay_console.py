"""Progress and results of a replay on the console."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gp_active_sensing.commands.console import believed, summary_lines

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Showing", "end_lines"]

_HEADS = {
    "again": "The mission once more: its decisions, computed again.",
    "decisions": "What the planner would have chosen, and where the probe went:",
    "belief": "What the map would have been, place by place:",
}


class Showing:
    """A line for each record; on a terminal a bar as well.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Any = None
        self._task: Any = None
        self._mode = ""

    def __enter__(self) -> Showing:
        if self._console.is_terminal:
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
            self._progress = Progress(*columns, console=self._console)
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, mode: str, total: int) -> Callable[[int], None]:
        """Show what is replayed; return what is told how many messages have been read."""
        self._mode = mode
        self._say(_HEADS[mode])
        if mode != "belief":
            self._say(f"{'stage':>5}  {'planner':<14}{'nat':>8}  {'probe':<14}{'nat':>8}  reading")
        if self._progress is None:
            return lambda read: None
        self._task = self._progress.add_task("replaying", total=total)
        return lambda read: self._progress.update(self._task, completed=read)

    def record(self, record: Mapping[str, Any]) -> None:
        """Show a record."""
        self._say(_LINES.get(self._mode, _place_line)(record))

    def _say(self, text: str) -> None:
        console = self._console if self._progress is None else self._progress.console
        console.out(text, highlight=False)


def _place_line(record: Mapping[str, Any]) -> str:
    parts = [
        f"place {record['stage']:>4}  {record['name']:<14}",
        f"read {record['value']:.2f}",
        *believed(record),
    ]
    if record.get("promised_error") is not None:
        parts.append(f"promised {record['promised_error']:.2f}")
    if record.get("rmspe") is not None:
        parts.append(f"RMSPE {record['rmspe']:.2f}")
    return "  ".join(parts)


def _stage_line(record: Mapping[str, Any]) -> str:
    told = record.get("information") or {}
    went = record.get("went_name")
    value = record["value"]
    return (
        f"{record['stage']:>5}  {_cut(record['name']):<14}{_nat(told.get('planned'))}  "
        f"{'–' if went is None else _cut(went):<14}{_nat(told.get('went'))}  "
        + ("none" if value is None else f"{value:.2f}")
    )


_LINES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "decisions": _stage_line,
    "again": _stage_line,
    "belief": _place_line,
}


def _cut(name: str) -> str:
    return name if len(name) <= 13 else f"{name[:12]}…"


def _nat(value: float | None) -> str:
    return f"{'–':>8}" if value is None else f"{value:>8.3f}"


def end_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return a few lines for the end of a replay.

    Args:
        summary: as in ``summary.json``.
    """
    lines = summary_lines(summary)
    done = summary["replay"]

    def add(what: str, text: str) -> None:
        lines.append(f"  {what:<17} {text}")

    read = f"{done['messages']} messages read"
    if unreadable := sum(done["unreadable"].values()):
        read += f", {unreadable} of them could not be decoded"
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
            ("messages_missing", "messages that the node used are in its journal only"),
            ("messages_differ", "messages say something else than the node's journal"),
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
