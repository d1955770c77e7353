"""The commands ``gp-active-sensing maps …``: import maps and inspect them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from gp_active_sensing.commands import echo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gp_active_sensing.topology.base import Topology
    from gp_active_sensing.topology.inspection import PlaceSurvey, Survey
    from gp_active_sensing.topology.map_config import MapConfig
    from gp_active_sensing.topology.segments import RoadMap

_KMH = 3.6
_MOST_CLASSES = 8

_crs = click.option(
    "--crs",
    default="",
    metavar="NAME",
    help='Coordinate system of the file, where it does not say: "local" (metres), EPSG:4326 '
    "(longitude, latitude), EPSG:32648, …",
)


_set = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Key of section map, for a grid or a table of places, such as spacing=0.5, "
    "inflation=0.2, distances=ways.csv or 'columns_of=[x=E, y=N]'; may be "
    "repeated.",
)


@click.group()
def maps() -> None:
    """Import, inspect, check and draw maps.

    A map is a file, or the name of one that ships with the package. Roads: GeoJSON, a Nav2 route
    graph, GraphML of osmnx, OpenStreetMap, a SUMO network, CSV. Grids: map_server's YAML, a raster,
    areas in KML, in a plan of QGroundControl or in GeoJSON. Places: a CSV table.
    """


@maps.command("import")
@click.argument("source", metavar="SRC")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--largest-component",
    is_flag=True,
    help="Keep only the largest part with a way from each segment to each.",
)
@_crs
def import_map(source: str, out: Path, largest_component: bool, crs: str) -> None:
    """Turn the map SRC into the GeoJSON file OUT, in metres."""
    from gp_active_sensing.errors import MapError
    from gp_active_sensing.topology.inspection import survey
    from gp_active_sensing.topology.loaders.geojson import text_of
    from gp_active_sensing.topology.segments import keep_largest
    from gp_active_sensing.util.files import write_whole

    if out.suffix.lower() not in (".geojson", ".json"):
        msg = f"OUT: expected a name that ends in .geojson, got {out.name!r}"
        raise click.UsageError(msg)
    path, road_map = _load(source, crs)
    if out.exists() and out.samefile(path):
        msg = f"{out}: is the map that is read; write to another file"
        raise MapError(msg)
    if largest_component:
        road_map = keep_largest(road_map)
    figures = survey(road_map)
    write_whole(out, text_of(road_map))
    echo(f"wrote {out}: {_in_short(figures)}")
    _print(figures)


@maps.command()
@click.argument("file", metavar="FILE")
@_crs
@_set
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def inspect(file: str, crs: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print what a map holds: places, parts, units, extent."""
    found = _looked_at(file, crs, overrides)
    if as_json:
        data = {"file": str(found.path), **found.figures.to_mapping()}
        click.echo(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False))
        return
    click.secho(f"{found.figures.name}  ({found.path})", bold=True)
    for what, text in found.lines:
        echo(f"  {what:<14} {text}")
    _print(found.figures)


class _Looked(NamedTuple):
    """Description of a map: summary, figures and lines."""

    path: Path
    short: str
    figures: Survey | PlaceSurvey
    lines: list[tuple[str, str]]


def _looked_at(file: str, crs: str, overrides: tuple[str, ...]) -> _Looked:
    from gp_active_sensing.topology.inspection import survey, survey_places

    if (kind := _kind(file, overrides)) != "roads":
        path, config = _config_of(kind, file, crs, overrides)
        places = survey_places(_build(config, path))
        apart = f" {_apart(places)} m apart" if kind == "grid" else ""
        return _Looked(path, f"{places.places} places{apart}", places, _place_lines(places, kind))
    path, road_map = _road_map(file, crs, overrides)
    figures = survey(road_map)
    return _Looked(path, _in_short(figures), figures, _lines(figures))


@maps.command()
@click.argument("file", metavar="FILE")
@_crs
@_set
def validate(file: str, crs: str, overrides: tuple[str, ...]) -> None:
    """Check a map: exit code 0 when a probe can drive on it, else 1."""
    found = _looked_at(file, crs, overrides)
    echo(f"{found.path}: valid, {found.short}")
    _print(found.figures)


@maps.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PICTURE",
    help="Name that ends in .svg or .png; default: NAME.svg.",
)
@_crs
@_set
def show(file: str, out: Path | None, crs: str, overrides: tuple[str, ...]) -> None:
    """Draw a map as a picture.

    Roads have limits and directions; places have moves, walls and shores. Unreachable parts are
    red. Drawing needs matplotlib (extra [plot]).
    """
    from gp_active_sensing.report.map_picture import save_picture

    if out is not None and out.suffix.lower() not in (".svg", ".png"):
        msg = f"--out: expected a name that ends in .svg or .png, got {out.name!r}"
        raise click.UsageError(msg)
    path, picture = _picture(file, crs, overrides)
    made = out or Path(f"{path.name.partition('.')[0]}.svg")
    save_picture(picture, made)
    echo(str(made))


def _picture(file: str, crs: str, overrides: tuple[str, ...]) -> tuple[Path, Figure]:
    """Return the path and the picture of a map of any kind."""
    from gp_active_sensing.report.map_picture import place_picture, road_picture
    from gp_active_sensing.topology.inspection import survey, survey_places

    kind = _kind(file, overrides)
    if kind == "roads":
        path, road_map = _road_map(file, crs, overrides)
        return path, road_picture(road_map, survey(road_map))
    path, config = _config_of(kind, file, crs, overrides)
    places = _build(config, path)
    apart = f", {_apart(survey_places(places))} m apart" if kind == "grid" else ""
    title = f"{places.name}: {places.n} places{apart}"
    return path, place_picture(places, title)


def _kind(file: str, overrides: tuple[str, ...] = ()) -> str:
    """Return the kind of map that a file is, or raise an error that explains why it is none."""
    from gp_active_sensing.topology.loaders import kind_of_map, kinds_of_file
    from gp_active_sensing.util.resources import find_resource

    path = find_resource("maps", file)
    given = _below("map", overrides)
    if "map.kind=points" in given:
        return "points"
    if any(text.startswith("map.columns_of") for text in given):
        kinds = kinds_of_file(path.name)
        if "points" in kinds:  # the columns have names of their own, which say nothing
            return "points"
    return kind_of_map(str(path))


def _config_of(
    kind: str, file: str, crs: str, overrides: tuple[str, ...]
) -> tuple[Path, MapConfig]:
    """Return the path and the configuration of a map of places."""
    from gp_active_sensing.config import from_mapping
    from gp_active_sensing.topology.map_config import MapConfig
    from gp_active_sensing.util.resources import find_resource
    from gp_active_sensing.util.yaml_files import apply_overrides

    path = find_resource("maps", file)
    own = {"kind": kind, "file": str(path), "crs": crs}
    data = apply_overrides({"map": own}, _below("map", overrides))
    return path, from_mapping(MapConfig, data["map"])


def _build(config: MapConfig, path: Path) -> Topology:
    """Return the places; files that the configuration names may lie beside the map."""
    from gp_active_sensing.topology.config import build_topology

    return build_topology(config, base_dir=path.parent)


def _load(file: str, crs: str) -> tuple[Path, RoadMap]:
    from gp_active_sensing.errors import MapError
    from gp_active_sensing.topology.loaders import load_roads
    from gp_active_sensing.util.resources import find_resource

    kinds = {"grid": "a grid", "points": "a table of places (map.kind: points)"}
    if what := kinds.get(_kind(file)):
        msg = (
            f"{file}: is {what}, which has no roads; `maps inspect`, `maps validate` and "
            "`maps show` look at it"
        )
        raise MapError(msg)
    path = find_resource("maps", file)
    return path, load_roads(path, crs=crs)


def _road_map(file: str, crs: str, overrides: tuple[str, ...]) -> tuple[Path, RoadMap]:
    if overrides:
        msg = f"--set is for grids and tables of places, and {file} is a road map"
        raise click.UsageError(msg)
    return _load(file, crs)


def _place_lines(figures: PlaceSurvey, kind: str) -> list[tuple[str, str]]:
    """Return the description of a map of places, as lines."""
    sides = (_metres(b - a) for a, b in zip(figures.low, figures.high, strict=True))
    extent = f"{' × '.join(sides)}, from x {figures.low[0]:g}, y {figures.low[1]:g} m"
    origin = f"metres, frame {figures.frame!r}{_datum(figures.datum)}"
    if kind == "points":
        ways = f"{figures.moves}, of a table" if figures.moves else "straight, to any other place"
        lines = [("places", f"{figures.places}, map.kind: points"), ("ways", ways)]
    else:
        moves = f"{figures.moves // 2} moves" if figures.moves else "any one may be next"
        lines = [("places", f"{figures.places}, {_apart(figures)} m apart, {moves}")]
        lines.append(("parts", _grid_parts(figures)))
    lines += [("extent", extent), ("coordinates", origin)]
    if len(figures.low) == 3:
        lines.append(("heights", f"z {figures.low[2]:g} … {figures.high[2]:g} m"))
    if figures.numbers:
        lines.append(("numbers", ", ".join(figures.numbers)))
    return lines


def _below(section: str, overrides: tuple[str, ...]) -> list[str]:
    return [f"{section}.{text.removeprefix(f'{section}.')}" for text in overrides]


def _apart(figures: PlaceSurvey) -> str:
    across, up = figures.spacing
    return f"{across:g}" if across == up else f"{across:g} × {up:g}"


def _grid_parts(figures: PlaceSurvey) -> str:
    if figures.parts == 1:
        lost = f"; {figures.lost} places of free ground were left out" if figures.lost else ""
        return f"one, with a way from each place to each{lost}"
    return f"{figures.parts}, not joined to each other; the largest has {figures.largest} places"


def _datum(datum: tuple[float, float] | None) -> str:
    if datum is None:
        return ""
    longitude, latitude = datum
    return (
        f"; the origin is longitude {longitude}, latitude {latitude} "
        f"(pose.datum: [{latitude}, {longitude}])"
    )


def _in_short(figures: Survey) -> str:
    segments = "1 segment" if figures.segments == 1 else f"{figures.segments} segments"
    return f"{segments} between {figures.junctions} junctions, {figures.metres / 1000:.1f} km"


def _print(figures: Survey | PlaceSurvey) -> None:
    for note in figures.notes:
        echo(f"note: {note}")
    for warning in figures.warnings:
        click.secho(f"warning: {warning}", fg="yellow")


def _lines(figures: Survey) -> list[tuple[str, str]]:
    """Return the description of a map, as lines."""
    share = 100.0 * figures.one_way_share
    lines = [
        ("segments", f"{figures.segments}, {figures.metres / 1000:.1f} km"),
        ("one-way", f"{figures.one_way} ({share:.0f} %)"),
        ("lengths", f"{_metres(figures.shortest)} … {_metres(figures.longest)}"),
        ("junctions", f"{figures.junctions}, {figures.dead_ends} dead ends"),
        ("parts", _parts(figures)),
        ("extent", f"{_metres(figures.width)} × {_metres(figures.height)}"),
        ("coordinates", f"metres, frame {figures.frame!r}, from {_origin(figures)}"),
        ("limits", _limits(figures)),
        ("lanes", _counts(figures.lanes)),
        ("classes", _counts(figures.classes)),
        ("features", ", ".join(figures.features)),
    ]
    lines[2] = (lines[2][0], f"{lines[2][1]}, median {_metres(figures.median_length)}")
    odd = [
        f"{count} {what}"
        for count, what in (
            (figures.self_loops, "loops back to where they begin"),
            (figures.parallel, "with another one between the same junctions"),
            (figures.with_successors, "list what may follow them"),
        )
        if count
    ]
    if odd:
        lines.append(("besides", "; ".join(odd)))
    return lines


def _parts(figures: Survey) -> str:
    if not figures.outside:
        return "one, with a way from each segment to each"
    joined = "all joined" if figures.parts == 1 else f"{figures.parts} not joined to each other"
    return (
        f"{joined}; the largest with a way from each segment to each has {figures.largest}, "
        f"{figures.outside} are outside"
    )


def _origin(figures: Survey) -> str:
    return f"{figures.crs}{_datum(figures.datum)}"


def _limits(figures: Survey) -> str:
    if figures.slowest is None or figures.fastest is None:
        return "none known"
    known = f"{figures.slowest * _KMH:.0f} … {figures.fastest * _KMH:.0f} km/h"
    return known + (f", {figures.without_limit} unknown" if figures.without_limit else "")


def _counts(counts: dict[str, int]) -> str:
    shown = [f"{word or 'none'}: {n}" for word, n in list(counts.items())[:_MOST_CLASSES]]
    rest = len(counts) - len(shown)
    return ", ".join(shown) + (f", {rest} more" if rest > 0 else "")


def _metres(value: float) -> str:
    return f"{value / 1000:.2f} km" if value >= 1000.0 else f"{value:.1f} m"
