"""The commands ``gp-active-sensing maps …``: import maps and inspect them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gp_active_sensing.commands import echo

if TYPE_CHECKING:
    from gp_active_sensing.commands.map_survey import Survey

_crs = click.option(
    "--crs",
    default="",
    metavar="NAME",
    help='Coordinate system, if the file does not name one: "local" (metres), EPSG:4326 '
    "(longitude, latitude), EPSG:32648, …",
)


_set = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the section `map:`, for a grid or a table of places. Examples: "
    "spacing=0.5, inflation=0.2, distances=ways.csv, 'columns_of=[x=E, y=N]'. May be repeated.",
)


@click.group()
def maps() -> None:
    """Import, inspect, check and draw maps.

    A map is a file, or the name of a map that ships with the package. Files of roads: GeoJSON, a
    Nav2 route graph, GraphML of osmnx, OpenStreetMap, a SUMO network, CSV. Files of grids:
    map_server's YAML, a raster, areas in KML, GeoJSON or a plan of QGroundControl. Files of places:
    a CSV table.
    """


@maps.command("import")
@click.argument("source", metavar="SRC")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--largest-component",
    is_flag=True,
    help="Keep only the largest set of segments that can all be reached from each other.",
)
@_crs
def import_map(source: str, out: Path, largest_component: bool, crs: str) -> None:
    """Convert the map SRC to the GeoJSON file OUT, in metres."""
    from gp_active_sensing.commands.map_survey import survey_roads
    from gp_active_sensing.errors import MapError
    from gp_active_sensing.export.geojson import text_of
    from gp_active_sensing.topology.roads import keep_largest
    from gp_active_sensing.util.files import write_whole

    if out.suffix.lower() not in (".geojson", ".json"):
        msg = f"OUT: expected a name that ends in .geojson, got {out.name!r}"
        raise click.UsageError(msg)
    path, _, road_map = _loaded(source, crs, only_roads=True)
    if out.exists() and out.samefile(path):
        msg = f"{out}: is the map that is read; write to another file"
        raise MapError(msg)
    if largest_component:
        road_map = keep_largest(road_map)
    found = survey_roads(road_map)
    write_whole(out, text_of(road_map))
    echo(f"wrote {out}: {found.short}")
    _print(found)


@maps.command()
@click.argument("file", metavar="FILE")
@_crs
@_set
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def inspect(file: str, crs: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print places, parts, units and extent of a map."""
    path, found = _surveyed(file, crs, overrides)
    if as_json:
        data = {"file": str(path), **found.to_mapping()}
        click.echo(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False))
        return
    click.secho(f"{found.figures['name']}  ({path})", bold=True)
    for what, text in found.lines:
        echo(f"  {what:<14} {text}")
    _print(found)


def _surveyed(file: str, crs: str, overrides: tuple[str, ...]) -> tuple[Path, Survey]:
    from gp_active_sensing.commands.map_survey import survey_places, survey_roads

    with _unsaid():
        path, kind, found = _loaded(file, crs, overrides)
    return path, survey_roads(found) if kind == "roads" else survey_places(found, kind)


@contextmanager
def _unsaid() -> Iterator[None]:
    """Silence the log warnings that the survey of a map also prints."""
    names = (f"gp_active_sensing.topology.{name}" for name in ("grids", "loaders.tables"))
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    try:
        for logger in levels:
            logger.setLevel(logging.ERROR)
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


@maps.command()
@click.argument("file", metavar="FILE")
@_crs
@_set
def validate(file: str, crs: str, overrides: tuple[str, ...]) -> None:
    """Check a map. The exit code is 0 if a robot can drive on it, else 1."""
    path, found = _surveyed(file, crs, overrides)
    echo(f"{path}: valid, {found.short}")
    _print(found)


@maps.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PICTURE",
    help="Picture to write, .svg or .png. Default: the name of the map, .svg.",
)
@_crs
@_set
def show(file: str, out: Path | None, crs: str, overrides: tuple[str, ...]) -> None:
    """Draw a map as a picture.

    A map of roads shows speed limits and directions. Any other map shows the places, the moves
    between them, walls and shores.
    Unreachable parts are red. The picture is drawn with matplotlib (extra [plot]).
    """
    from gp_active_sensing.commands.map_survey import survey_places
    from gp_active_sensing.report.map_picture import place_picture, road_picture, save_picture

    if out is not None and out.suffix.lower() not in (".svg", ".png"):
        msg = f"--out: expected a name that ends in .svg or .png, got {out.name!r}"
        raise click.UsageError(msg)
    path, kind, found = _loaded(file, crs, overrides)
    if kind == "roads":
        picture = road_picture(found)
    else:
        picture = place_picture(found, f"{found.name}: {survey_places(found, kind).short}")
    made = out or Path(f"{path.name.partition('.')[0]}.svg")
    save_picture(picture, made)
    echo(str(made))


def _loaded(
    file: str, crs: str, overrides: tuple[str, ...] = (), *, only_roads: bool = False
) -> tuple[Path, str, Any]:
    from gp_active_sensing.config import from_mapping
    from gp_active_sensing.errors import MapError
    from gp_active_sensing.topology.config import build_topology
    from gp_active_sensing.topology.loaders import kind_of_map, kinds_of_file, load_roads
    from gp_active_sensing.topology.map_config import MapConfig
    from gp_active_sensing.util.resources import find_resource
    from gp_active_sensing.util.yaml_files import apply_overrides

    path, given = find_resource("maps", file), [f"map.{s.removeprefix('map.')}" for s in overrides]
    # A table with named columns is a table of places.
    named = any(text.startswith("map.columns_of") for text in given)
    points = "map.kind=points" in given or (named and "points" in kinds_of_file(path.name))
    kind = "points" if points else kind_of_map(str(path))
    if kind == "roads":
        if overrides:
            msg = f"--set is for grids and tables of places, and {file} is a road map"
            raise click.UsageError(msg)
        return path, kind, load_roads(path, crs=crs)
    if only_roads:
        what = "a grid" if kind == "grid" else "a table of places (map.kind: points)"
        msg = (
            f"{file}: is {what}, which has no roads; `maps inspect`, `maps validate` and "
            "`maps show` look at it"
        )
        raise MapError(msg)
    own = {"kind": kind, "file": str(path), "crs": crs}
    data = apply_overrides({"map": own}, given)
    config = from_mapping(MapConfig, data["map"])
    # Other files of the configuration may be in the map's folder.
    return path, kind, build_topology(config, base_dir=path.parent)


def _print(found: Survey) -> None:
    for note in found.notes:
        echo(f"note: {note}")
    for warning in found.warnings:
        click.secho(f"warning: {warning}", fg="yellow")
