"""Command ``export``: write the map of a run for other programs."""

from __future__ import annotations

import math
from pathlib import Path

import click

from gp_active_sensing.commands import echo


@click.command()
@click.argument("run_dir", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "format",
    required=True,
    metavar="FORMAT",
    help="Format of the map: csv, geojson, asc (ESRI grid), pgm (map_server) or geotiff. Format of "
    "the remaining route: plan (QGroundControl) or waypoints (Mission Planner).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write. Default: the name of the run, in the current folder.",
)
@click.option("--stage", type=int, metavar="N", help="Map after stage N. Default: the last map.")
@click.option(
    "--layer",
    type=float,
    metavar="Z",
    help="Only the layer at this height in metres; depths are negative. Default: all layers.",
)
@click.option(
    "--quantity",
    default="",
    metavar="NAME",
    help="Only this quantity. Default: all quantities in csv, geojson and geotiff, the main "
    "quantity in other formats.",
)
@click.option(
    "--spacing",
    type=click.FloatRange(min=0.0, min_open=True),
    metavar="METRES",
    help="Distance between the points of a finer map. Default: the map has the places of the "
    "mission.",
)
@click.option(
    "--above",
    type=float,
    multiple=True,
    metavar="LIMIT",
    help="Add the probability that the value is above LIMIT. May be repeated.",
)
@click.option(
    "--below",
    type=float,
    multiple=True,
    metavar="LIMIT",
    help="Add the probability that the value is below LIMIT. May be repeated.",
)
@click.option(
    "--contours",
    metavar="LEVELS",
    help="Also write contour lines at these levels as GeoJSON, such as 5,10,15.",
)
@click.option(
    "--altitude",
    type=float,
    default=0.0,
    metavar="METRES",
    help="Altitude of the waypoints above the home position. Default: 0, or the heights of the "
    "map.",
)
@click.option("--overwrite", is_flag=True, help="Replace existing files.")
def export(
    run_dir: Path,
    format: str,
    out: Path | None,
    stage: int | None,
    layer: float | None,
    quantity: str,
    spacing: float | None,
    above: tuple[float, ...],
    below: tuple[float, ...],
    contours: str | None,
    altitude: float,
    overwrite: bool,
) -> None:
    """Write the map of a run for other programs.

    RUN is the folder of a simulation, a mission or a replay, which may still be under way. For each
    place the map has the estimate, its standard deviation, and the number and average of readings.

    The formats asc and pgm write FILE_mean and FILE_std, and one more file for each --above and
    --below. If the map has layers, each layer has files of its own, such as FILE_z-3m_mean. The
    option --contours adds FILE_contours.geojson with contour lines of the estimate. With --above or
    --below this file also has the areas where the value is above or below the limit with a
    probability of at least 0.5, 0.9 and 0.99.

    The formats plan and waypoints write the remaining route of a mission under way, with one file
    for each robot. They need a map in degrees.
    """
    from gp_active_sensing.export import check_out, export_map, format_of
    from gp_active_sensing.export.field_map import Limit
    from gp_active_sensing.export.lattice import layer_at
    from gp_active_sensing.export.missions import MISSIONS
    from gp_active_sensing.report.reconstruction import map_of_run

    if format in MISSIONS:
        fine = spacing or above or below or contours
        if fine or quantity or layer is not None or stage is not None:
            msg = f"--to {format} takes only --out, --altitude and --overwrite"
            raise click.UsageError(msg)
        _export_route(run_dir, format, out, altitude, overwrite=overwrite)
        return
    suffix = format_of(format, MISSIONS).suffix  # checked before the run is read
    check_out(out)
    levels = () if contours is None else _levels(contours)
    if not all(map(math.isfinite, (*above, *below))):
        msg = "expected finite numbers for --above and --below"
        raise click.UsageError(msg)
    limits = [*map(Limit, above), *(Limit(value, above=False) for value in below)]
    field = map_of_run(run_dir, stage, spacing=spacing, limits=limits, quantity=quantity)
    name = f"{run_dir.resolve().name}{f'-{quantity}' if quantity else ''}"
    if stage is not None:
        name += f"-stage{stage}"
    if layer is not None:
        name += f"_{layer_at(field.topology, layer).word}"
        field = field.at_height(layer)
    path = out or Path(f"{name}{suffix}")
    for file in export_map(field, path, format, overwrite=overwrite, levels=levels):
        echo(str(file))
    low, high = field.mean.min(), field.mean.max()
    if outside := [f"{level:g}" for level in levels if not low < level < high]:
        msg = f"note: no line at {', '.join(outside)}: the estimate lies in {low:g} … {high:g}"
        echo(msg, err=True)


def _export_route(
    run_dir: Path, format: str, out: Path | None, altitude: float, *, overwrite: bool
) -> None:
    from gp_active_sensing.export import check_out, write_new
    from gp_active_sensing.export.missions import MISSIONS
    from gp_active_sensing.report.route_left import route_left

    path = out or Path(f"{run_dir.resolve().name}.{format}")
    check_out(path)
    contents: dict[str, str | bytes] = {}
    for name, (home, route) in route_left(run_dir, altitude).items():
        file = path.with_name(f"{path.stem}{f'_{name}' if name else ''}{path.suffix}")
        contents[file.name] = MISSIONS[format](home, route)
    for file in write_new(path.parent, contents, overwrite=overwrite):
        echo(str(file))


def _levels(text: str) -> tuple[float, ...]:
    """Return the levels of contours. Raises BadParameter if a level is not a finite number."""
    try:
        levels = tuple(sorted({float(each) for each in text.split(",")}))
    except ValueError:
        levels = (math.nan,)
    if not all(map(math.isfinite, levels)):
        msg = f"expected numbers separated by commas, such as 5,10,15, got {text!r}"
        raise click.BadParameter(msg, param_hint="--contours")
    return levels
