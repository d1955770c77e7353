"""Options that commands on kernels share, and checks of what they are given."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gp_active_sensing.learning.data.request import RowRequest

__all__ = [
    "KERNEL_OPTIONS",
    "KernelOptions",
    "bag_options",
    "check_new_file",
    "distance",
    "factor",
    "kernel_options",
]


@dataclass(frozen=True)
class KernelOptions:
    """Options of `learn` that are for kernels only; None = not given."""

    kernels: str | None
    inputs: str | None
    inducing: int | None
    batch: int | None
    iterations: int | None
    restarts: int | None
    hyperparameters: str | None
    stages: str | None
    top: int | None
    refit: int | None
    jobs: int | None
    cluster: str | None
    device: str | None
    checkpoint: Path | None
    resume: bool
    earlier: Path | None
    report: Path | None
    reading_topic: str | None
    reading_type: str | None
    reading_field: str | None
    pose_topic: str | None
    pose_type: str | None

    def asked(self, data: str, **said: Any) -> RowRequest:
        """Return what the data are: these options, and those that `learn` always has."""
        from gp_active_sensing.learning.data.request import RowRequest

        return RowRequest(
            data,
            inputs=tuple(name for word in (self.inputs or "").split(",") if (name := word.strip())),
            reading_topic=self.reading_topic or "",
            reading_type=self.reading_type or "",
            reading_field=self.reading_field or "",
            pose_topic=self.pose_topic or "",
            pose_type=self.pose_type or "",
            **said,
        )


def factor(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Refuse a factor on values that would make them no numbers, or all the same; a callback."""
    if value is not None and (not math.isfinite(value) or value == 0.0):
        msg = f"expected a finite number other than 0, got {value:g}"
        raise click.BadParameter(msg)
    return value


def distance(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    """Refuse a distance that is none; a callback."""
    if value is not None and not 0.0 <= value < math.inf:
        msg = f"expected a finite number of metres, 0 or more, got {value:g}"
        raise click.BadParameter(msg)
    return value


_positive = click.IntRange(min=1)
_file = click.Path(path_type=Path, dir_okay=False)
_OF_BAG = (
    click.option("--reading-topic", metavar="TOPIC", help="Of a bag; default: /reading."),
    click.option("--reading-type", metavar="TYPE", help="Default: the topic's own."),
    click.option("--reading-field", metavar="PATH", help="Such as twist.twist.linear.x"),
    click.option("--pose-topic", metavar="TOPIC", help="Default: /pose."),
    click.option("--pose-type", metavar="TYPE", help="Default: the topic's own."),
)
_OPTIONS = (
    click.option(
        "--kernels",
        metavar="SET",
        help="Learn a belief over kernels: k144, k12, level2, base, or names such as SE+PER,LIN×RQ",
    ),
    click.option(
        "--inputs",
        metavar="COLUMNS",
        help="Of a CSV file, such as x,y,hours; of a bag: some of x,y,hours. No map is used then, "
        "unless the file has a column for each place.",
    ),
    click.option("--inducing", type=_positive, metavar="N", help="Inducing points of each kernel."),
    click.option("--batch", type=_positive, metavar="N", help="Rows of a mini-batch."),
    click.option("--iterations", type=_positive, metavar="N", help="Steps at most, a stage."),
    click.option("--restarts", type=_positive, metavar="N", help="Starting points of each kernel."),
    click.option(
        "--hyperparameters",
        type=click.Choice(("full", "point")),
        help="Believed in, or one value each.",
    ),
    click.option(
        "--stages", metavar="SHARES", help="Of the rows, such as 0.1,0.3,1: the belief after each."
    ),
    click.option("--top", type=_positive, metavar="N", help="Kernels that the model keeps."),
    click.option(
        "--refit",
        type=_positive,
        metavar="N",
        help="Fit the --top kernels (10) again, with N inducing points.",
    ),
    click.option("--jobs", type=_positive, metavar="N", help="Processes; default: 1."),
    click.option("--cluster", metavar="ADDRESS", help="Use the workers of this dask scheduler."),
    click.option("--device", type=click.Choice(("auto", "cpu", "cuda")), help="Where to compute."),
    click.option(
        "--checkpoint",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Where the optimisation is kept; default: beside --out, until it is done.",
    ),
    click.option("--resume", is_flag=True, help="Go on with what the checkpoint holds."),
    click.option(
        "--continue",
        "earlier",
        type=_file,
        metavar="MODEL",
        help="Go on from a model of some of these rows; by default with its kernels.",
    ),
    click.option("--report", type=_file, metavar="PAGE", help="Write a page about it, .html"),
)

KERNEL_OPTIONS = tuple(KernelOptions.__dataclass_fields__)
"""Names of the parameters that are for kernels only."""


def kernel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of kernels to a command."""
    for option in reversed((*_OPTIONS, *_OF_BAG)):
        command = option(command)
    return command


def bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of bags to a command; they are parameters named as those of `RowRequest`."""
    for option in reversed(_OF_BAG):
        command = option(command)
    return command


def check_new_file(option: str, path: Path, suffix: str, what: str = "") -> Path:
    """Return where a file goes, if it can go there and its name says what it is.

    Without the suffix a slip, such as the name of the table that is read, would cost a file.

    Args:
        option: that names the file, for the message.
        path: of the file.
        suffix: that it has to have, with the dot; in any case.
        what: is written, for the message.

    Raises:
        click.UsageError: another suffix, or no such folder.
    """
    if path.suffix.lower() != suffix:
        said = f" ({what})" if what else ""
        msg = f"{option}: expected a name that ends in {suffix}{said}, got {path.name!r}"
        raise click.UsageError(msg)
    if not path.absolute().parent.is_dir():
        msg = f"{option}: there is no folder {path.absolute().parent}"
        raise click.UsageError(msg)
    return path
