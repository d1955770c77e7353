"""Commands ``gp-active-sensing model …``: inspect a kernel model and predict with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gp_active_sensing.commands import echo
from gp_active_sensing_learning.commands.kernels import (
    bag_options,
    check_new_file,
    distance,
    factor,
)

if TYPE_CHECKING:
    from gp_active_sensing.topology import Topology

_file = click.Path(path_type=Path, dir_okay=False)
_model = click.argument("file", metavar="FILE", type=_file)
_OF_PLACES = (
    click.option(
        "--scenario", metavar="NAME", help="Scenario whose map has the places of the rows."
    ),
    click.option("--map", "map_file", metavar="FILE", help="Road map with the places of the rows."),
    click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        help="Key of the map, such as map.features=[relational]. May be repeated.",
    ),
    click.option(
        "--place", default="", metavar="COLUMN", help="Column with the names of the places."
    ),
)


def _places(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select the map."""
    for option in reversed(_OF_PLACES):
        command = option(command)
    return command


@click.group()
def model() -> None:
    """Show and prune learned kernels, and predict with them."""


@model.command()
@_model
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", help="Kernels in the list. Default: 12."
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole model, as JSON.")
def show(file: Path, top: int | None, as_json: bool) -> None:
    """Print the kernels, noise and length-scales of a model."""
    from gp_active_sensing_learning.kernel_lines import SHOWN, model_lines, model_mapping
    from gp_active_sensing_learning.learned_file import read_model

    found = read_model(file)
    if as_json:
        click.echo(json.dumps({"model": str(file)} | model_mapping(found), indent=2))
        return
    for line in model_lines(found, top or SHOWN):
        echo(line)


@model.command()
@_model
@click.argument("rows", metavar="ROWS", type=_file)
@click.option("--out", type=_file, metavar="FILE", required=True, help="Table to write, .csv")
@_places
def predict(
    file: Path,
    rows: Path,
    out: Path,
    scenario: str | None,
    map_file: str | None,
    overrides: tuple[str, ...],
    place: str,
) -> None:
    """Predict the field at the rows of a CSV file.

    ROWS has a column for each input of the model. The table in --out has three more columns: mean
    and std (estimate of the field and its standard deviation), and reading_std (standard deviation
    of a new reading).
    """
    from rich.console import Console

    from gp_active_sensing_learning.learned_file import read_model
    from gp_active_sensing_learning.predict import predict_table

    check_new_file("--out", out, ".csv", "the table")
    if out.exists() and file.exists() and out.samefile(file):
        msg = f"--out: {out} is the model itself; write the table to another file"
        raise click.UsageError(msg)
    topology = _map(scenario, map_file, overrides, place)
    found = read_model(file)
    console = Console(quiet=not Console().is_terminal)
    with console.status("predicting") as status:
        done = predict_table(
            found,
            rows,
            out,
            topology=topology,
            place=place,
            progress=lambda count: status.update(f"predicting: {count} rows"),
        )
    echo(f"written: {out}, {done.rows} rows")
    for note in done.notes:
        echo(f"note: {note}", err=True)


def _map(
    scenario: str | None, map_file: str | None, overrides: tuple[str, ...], place: str
) -> Topology | None:
    from gp_active_sensing.config import from_mapping
    from gp_active_sensing.sim.scenario import load_scenario
    from gp_active_sensing.topology import MapConfig, build_topology
    from gp_active_sensing.util.yaml_files import apply_overrides

    if scenario is not None and map_file is not None:
        msg = "--scenario and --map: give one of them"
        raise click.UsageError(msg)
    if scenario is not None:
        return build_topology(load_scenario(scenario, overrides=overrides).map)
    if map_file is None:
        if overrides or place:
            msg = f"{'--set' if overrides else '--place'} needs --scenario or --map"
            raise click.UsageError(msg)
        return None
    whole: dict[str, Any] = apply_overrides({"map": {"file": map_file}}, overrides)
    return build_topology(from_mapping(MapConfig, whole["map"], path="map"))


@model.command()
@_model
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", required=True, help="Kernels to keep."
)
@click.option("--out", type=_file, metavar="FILE", required=True, help="Smaller model, .npz")
def prune(file: Path, top: int, out: Path) -> None:
    """Keep the most probable kernels of a model."""
    from gp_active_sensing_learning.kernel_predictor import prune as pruned
    from gp_active_sensing_learning.learned_file import read_model, write_model

    check_new_file("--out", out, ".npz", "the model file")
    found = read_model(file)
    kept = pruned(found, top)
    write_model(out, kept)
    share = float(found.belief.probabilities[:top].sum())
    echo(
        f"written: {out}, {len(kept.fits)} of {len(found.fits)} kernels, which had {share:.3f} of "
        "the belief"
    )


@model.command()
@_model
@click.option(
    "--data",
    metavar="DATA",
    help="Rows to predict and compare: a CSV file, a run, a scenario or a bag, as for `learn`.",
)
@click.option(
    "--value",
    default="",
    metavar="COLUMN",
    help="Column with the values. For a run: name of the quantity.",
)
@click.option(
    "--scale",
    type=float,
    callback=factor,
    metavar="X",
    help="Factor on the values. Default: that of the model.",
)
@click.option(
    "--snap",
    type=float,
    callback=distance,
    metavar="M",
    help="Largest distance from (x, y) of a row to its place. Default: that of the model.",
)
@_places
@bag_options
@click.option("--out", type=_file, metavar="PAGE", required=True, help="Page to write, .html")
def report(file: Path, data: str | None, out: Path, **given_options: Any) -> None:
    """Write a page about a model.

    With --data the page also shows how well the model predicts the rows of the data.
    """
    import tempfile

    from gp_active_sensing.errors import ConfigError
    from gp_active_sensing_learning.data.sources import asked_of, load_rows
    from gp_active_sensing_learning.data.table import check_stamps
    from gp_active_sensing_learning.learned_file import read_model
    from gp_active_sensing_learning.report.kernel_page import write_kernel_page

    check_new_file("--out", out, ".html", "the page")
    given = {name: value for name, value in given_options.items() if value not in (None, "", ())}
    if data is None:
        if given:
            option = {"map_file": "map", "overrides": "set"}.get(name := next(iter(given)), name)
            msg = f"--{option.replace('_', '-')} is for --data"
            raise click.UsageError(msg)
        write_kernel_page(read_model(file), out)
        echo(str(out))
        return
    found = read_model(file)
    asked = asked_of(found, data, given)
    with tempfile.TemporaryDirectory() as folder:
        rows = load_rows(asked, Path(folder), found.time_origins)
        if set(rows.input_names) != set(found.input_names):
            msg = (
                f"the model's inputs are {', '.join(found.input_names)}, those of {data} "
                f"{', '.join(rows.input_names)}; give the map it was learned on"
            )
            raise ConfigError(msg)
        warnings = check_stamps(found, rows.recipe.get("times") or {}, rows.source)
        for note in (*rows.notes, *warnings):
            echo(f"note: {note}", err=True)
        write_kernel_page(found, out, rows)
    echo(str(out))
