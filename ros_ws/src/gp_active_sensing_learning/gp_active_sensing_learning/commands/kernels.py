"""The command ``learn --kernels …``, and options that several commands share."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gp_active_sensing.commands import echo

if TYPE_CHECKING:
    from gp_active_sensing.kernel_model.model import KernelModel
    from gp_active_sensing_learning.checkpoint_directory import CheckpointDirectory
    from gp_active_sensing_learning.data.request import RowRequest
    from gp_active_sensing_learning.kernel_selection import VbksConfig


@dataclass(frozen=True)
class KernelOptions:
    """Options of the command `learn` that require ``--kernels``; None = the option is not given."""

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
    device: str | None
    resume: bool
    report: Path | None
    reading_topic: str | None
    reading_field: str | None
    pose_topic: str | None

    def asked(self, data: str, **more: Any) -> RowRequest:
        """Return the request for `data`. `more` has the other options of the command `learn`."""
        from gp_active_sensing_learning.data.request import RowRequest

        return RowRequest(
            data,
            inputs=tuple(name for word in (self.inputs or "").split(",") if (name := word.strip())),
            reading_topic=self.reading_topic or "",
            reading_field=self.reading_field or "",
            pose_topic=self.pose_topic or "",
            **more,
        )


def factor(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Reject a factor that is 0 or not finite."""
    if value is not None and (not math.isfinite(value) or value == 0.0):
        msg = f"expected a finite number other than 0, got {value:g}"
        raise click.BadParameter(msg)
    return value


def distance(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    """Reject a distance that is negative or not finite."""
    if value is not None and not 0.0 <= value < math.inf:
        msg = f"expected a finite number of metres, 0 or more, got {value:g}"
        raise click.BadParameter(msg)
    return value


_positive = click.IntRange(min=1)
_file = click.Path(path_type=Path, dir_okay=False)
_OF_BAG = (
    click.option("--reading-topic", metavar="TOPIC", help="Readings in a bag. Default: /reading."),
    click.option(
        "--reading-field",
        metavar="PATH",
        help="Path of the value in the message, such as twist.twist.linear.x",
    ),
    click.option("--pose-topic", metavar="TOPIC", help="Poses in a bag. Default: /pose."),
)
_OPTIONS = (
    click.option(
        "--kernels",
        metavar="SET",
        help="Learn a belief over a set of kernels: base, level2, k12 or k144 (12 or 144 kernels), "
        "or names such as SE+PER,LIN×RQ.",
    ),
    click.option(
        "--inputs",
        metavar="COLUMNS",
        help="Input columns of a CSV file, such as x,y,hours. No map is then needed, unless the "
        "file has a column for each place.",
    ),
    click.option("--inducing", type=_positive, metavar="N", help="Inducing points of each kernel."),
    click.option("--batch", type=_positive, metavar="N", help="Rows of a mini-batch."),
    click.option(
        "--iterations",
        type=_positive,
        metavar="N",
        help="Largest number of optimisation steps for each share of --stages.",
    ),
    click.option("--restarts", type=_positive, metavar="N", help="Starting points of each kernel."),
    click.option(
        "--hyperparameters",
        type=click.Choice(("full", "point")),
        help="Learn a distribution (full) or one value (point) for each hyperparameter.",
    ),
    click.option(
        "--stages",
        metavar="SHARES",
        help="Compute the belief after these fractions of the rows, such as 0.1,0.3,1.",
    ),
    click.option("--top", type=_positive, metavar="N", help="Number of kernels in the model."),
    click.option(
        "--refit",
        type=_positive,
        metavar="N",
        help="Fit the best kernels again with N inducing points. --top sets the number of these "
        "kernels (default: 10).",
    ),
    click.option("--jobs", type=_positive, metavar="N", help="Processes. Default: 1."),
    click.option("--device", type=click.Choice(("auto", "cpu", "cuda")), help="Processor or GPU."),
    click.option("--resume", is_flag=True, help="Continue an interrupted run with the same --out."),
    click.option("--report", type=_file, metavar="PAGE", help="Page about the model, .html"),
)

KERNEL_OPTIONS = tuple(KernelOptions.__dataclass_fields__)
"""Names of the options of the command `learn` that require ``--kernels``."""


def kernel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options in `KERNEL_OPTIONS` to a command."""
    for option in reversed((*_OPTIONS, *_OF_BAG)):
        command = option(command)
    return command


def bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for topics and fields of a ROS bag to a command."""
    for option in reversed(_OF_BAG):
        command = option(command)
    return command


def check_new_file(option: str, path: Path, suffix: str, what: str = "") -> Path:
    """Return `path` after a check of its suffix and folder.

    The check of the suffix prevents a mistyped option from overwriting the input table.

    Raises:
        click.UsageError: the path has another suffix, or the folder does not exist.
    """
    if path.suffix.lower() != suffix:
        hint = f" ({what})" if what else ""
        msg = f"{option}: expected a name that ends in {suffix}{hint}, got {path.name!r}"
        raise click.UsageError(msg)
    if not path.absolute().parent.is_dir():
        msg = f"{option}: there is no folder {path.absolute().parent}"
        raise click.UsageError(msg)
    return path


_SECTION = "vbks."


def learn_kernels(
    asked: RowRequest,
    options: KernelOptions,
    *,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Learn a belief over kernels. Write the model to `out`; None = ``DATA-kernels.npz``."""
    from gp_active_sensing_learning.checkpoint_directory import NAME, folder_of, workplace
    from gp_active_sensing_learning.kernel_sets import kernel_set

    if options.report is not None:
        check_new_file("--report", options.report, ".html")
    config, overrides = _settings(options, asked.overrides, seed)
    asked = dataclasses.replace(asked, overrides=overrides)
    expressions = kernel_set(options.kernels or "")
    file = out or Path(f"{Path(asked.data).stem or 'model'}-kernels.npz")
    check_new_file("--out", file, ".npz", "the model file")
    if out is None and file.exists():
        msg = f"{file} exists: name the model file with --out"
        raise click.UsageError(msg)
    folder = folder_of(file)
    try:
        with workplace(folder, resume=options.resume) as place:
            model = _learn(asked, options, (config, expressions), place, file, quiet=as_json)
    except KeyboardInterrupt:
        if not (folder / NAME).is_dir():
            raise
        msg = f"interrupted; the same command with --out {file} --resume goes on"
        raise click.ClickException(msg) from None
    _print_model(model, file, asked, options, as_json=as_json)


def _learn(
    asked: RowRequest,
    options: KernelOptions,
    what: tuple[VbksConfig, tuple[Any, ...]],
    place: CheckpointDirectory,
    file: Path,
    *,
    quiet: bool,
) -> KernelModel:
    from time import monotonic

    from rich.console import Console

    from gp_active_sensing.errors import MissingDependencyError
    from gp_active_sensing_learning.data.sources import load_rows
    from gp_active_sensing_learning.kernel_lines import show_learning
    from gp_active_sensing_learning.kernel_selection.select import TwoStageSettings, learn_model
    from gp_active_sensing_learning.learned_file import write_model

    config, expressions = what
    rows = load_rows(asked, place.rows)
    try:  # before any output
        for module in ("torch", "gpytorch"):
            importlib.import_module(module)
    except ImportError as error:
        msg = (
            f"learning needs PyTorch and GPyTorch ({error}): pip install "
            "torch gpytorch, or in a checkout: make heavy"
        )
        raise MissingDependencyError(msg) from error
    if not quiet:
        echo(
            f"{len(rows)} rows of {rows.source}: {rows.output_name} of "
            f"{', '.join(rows.input_names)}; {len(expressions)} "
            f"kernel{'s' if len(expressions) > 1 else ''}"
        )
    for note in rows.notes:
        echo(f"note: {note}", err=True)
    began = monotonic()
    console = Console(quiet=quiet, soft_wrap=True)
    way = TwoStageSettings(
        options.top, options.refit, options.jobs or 1, place.checkpoint, options.resume
    )
    with show_learning(console) as show:
        model = learn_model(rows, expressions, config, way, progress=show)
    more_settings = {
        "recipe": dict(rows.recipe),
        "notes": list(rows.notes),
        "rows_digest": rows.digest(),
        "transform": rows.recipe.get("transform", "identity"),
        "expressions": [str(e) for e in expressions],
        "seconds": round(monotonic() - began, 1),
    }
    model = dataclasses.replace(model, settings=model.settings | more_settings)
    write_model(file, model)
    if options.report is not None:
        from gp_active_sensing_learning.report.kernel_page import write_kernel_page

        write_kernel_page(model, options.report, rows)
    return model


def _print_model(
    model: KernelModel, file: Path, asked: RowRequest, options: KernelOptions, *, as_json: bool
) -> None:
    from gp_active_sensing_learning.kernel_lines import SHOWN, model_lines, model_mapping

    if as_json:
        found = {"model": str(file)} | model_mapping(model)
        click.echo(json.dumps(found, indent=2, allow_nan=False))
        return
    echo("")
    for line in model_lines(model, SHOWN):
        echo(line)
    echo("")
    echo(f"  model    {file}")
    if options.report is not None:
        echo(f"  report   {options.report}")
    for what, line in _next(file, model, asked, report=options.report is not None):
        echo(f"  {what:<8} {line}")


def _settings(
    options: KernelOptions, overrides: Sequence[str], seed: int
) -> tuple[VbksConfig, tuple[str, ...]]:
    """Return the settings of VBKS, and the overrides of other sections."""
    from gp_active_sensing.config import from_mapping
    from gp_active_sensing.util.yaml_files import apply_overrides
    from gp_active_sensing_learning.kernel_selection import VbksConfig

    names = ("inducing", "batch", "iterations", "restarts", "hyperparameters", "device")
    vbks_keys: dict[str, Any] = {
        name: value for name in names if (value := getattr(options, name)) is not None
    }
    if options.stages is not None:
        vbks_keys["stages"] = _shares(options.stages)
    own = [text for text in overrides if text.startswith(_SECTION)]
    mapping = apply_overrides({"vbks": vbks_keys | {"seed": seed}}, own)
    rest = tuple(text for text in overrides if text not in own)
    return from_mapping(VbksConfig, mapping["vbks"], path="vbks"), rest


def _shares(text: str) -> list[float]:
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or found != sorted(set(found)) or not 0.0 < found[0] or found[-1] != 1.0:
        msg = f"--stages: expected ascending shares that end with 1, such as 0.1,0.3,1; got {text}"
        raise click.UsageError(msg)
    return found


def _next(
    file: Path, model: KernelModel, asked: RowRequest, *, report: bool
) -> Iterator[tuple[str, str]]:
    """Yield (purpose, command line) for the commands that a user may run next."""
    if not report:
        yield "page", f"gp-active-sensing model report {file} --out {file.stem}.html"
    recipe = model.settings["recipe"]
    if recipe.get("kind") == "map":
        # Replace the section: a kernel or length-scales of the scenario would contradict the model.
        section: dict[str, str] = {"model": str(file)}
        if recipe["transform"] != "identity":
            section["transform"] = recipe["transform"]
        inside = ", ".join(f"{key}: {value}" for key, value in section.items())
        keys = [f"belief={{{inside}}}", *(key for key in asked.overrides if key.startswith("map."))]
        given = " ".join(f"--set {shlex.quote(key)}" for key in keys)
        yield "use", f"gp-active-sensing run {recipe.get('scenario') or 'SCENARIO'} {given}"
    else:
        yield "predict", f"gp-active-sensing model predict {file} ROWS.csv --out predicted.csv"
