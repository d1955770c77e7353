"""Export of a map as a table, a GIS raster, GIS vectors, or a map of map_server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gp_active_sensing.errors import RunError, suggest
from gp_active_sensing.export.contours import as_contours
from gp_active_sensing.export.field_map import FieldMap
from gp_active_sensing.export.lattice import layers_of
from gp_active_sensing.export.occupancy import as_map_server, square_layers
from gp_active_sensing.export.rasters import as_ascii_grids, as_geotiff, check_geotiff
from gp_active_sensing.export.tables import as_csv, as_geojson, check_geojson
from gp_active_sensing.topology import Topology
from gp_active_sensing.util.files import write_whole

Files = dict[str, str | bytes]
"""Contents of files to write, by file name."""


class Format(NamedTuple):
    """Format of an export.

    Args:
        suffix: suffix of the files.
        render: function that takes a map and a file name without suffix. It returns the content of
            each file by name.
        check: function that raises the errors of `render`: RunError for a map that the format
            cannot store, MissingDependencyError for a missing library.
        several: True = the format writes several files; each name has a word before the suffix.
        besides: suffixes of further files.
    """

    suffix: str
    render: Callable[[FieldMap, str], Files]
    check: Callable[[Topology], object] = lambda topology: None
    several: bool = False
    besides: tuple[str, ...] = ()


FORMATS: Mapping[str, Format] = {
    "csv": Format(".csv", lambda field, name: {f"{name}.csv": as_csv(field)}),
    "geojson": Format(
        ".geojson", lambda field, name: {f"{name}.geojson": as_geojson(field)}, check_geojson
    ),
    "asc": Format(
        ".asc",
        lambda field, name: {f"{name}_{k}.asc": v for k, v in as_ascii_grids(field).items()},
        layers_of,
        several=True,
    ),
    "pgm": Format(".yaml", as_map_server, square_layers, several=True, besides=(".pgm",)),
    "geotiff": Format(
        ".tif", lambda field, name: {f"{name}.tif": as_geotiff(field)}, check_geotiff
    ),
}


def export_map(
    field: FieldMap,
    out: Path,
    format: str,
    *,
    overwrite: bool = False,
    levels: Sequence[float] = (),
) -> list[Path]:
    """Write a map and return the files.

    Args:
        field: map to write.
        out: path of the file. If the format writes several files, the layer, ``_mean`` or ``_std``
            is added to each name.
        format: one of `FORMATS`.
        overwrite: replace existing files.
        levels: levels of contours; () = none. The contours are written to a further file
            ``_contours.geojson``.

    Raises:
        RunError: the format is unknown or cannot store the map, or a file exists or is not
            writable.
        MissingDependencyError: a library that the format needs is not installed.
    """
    check_out(out)
    kind = format_of(format)
    exact = not kind.several and bool(out.suffix)  # the given name as it is
    named = out.suffix.lower() in {kind.suffix, *kind.besides, f".{format}"}
    name = out.stem if exact or named else out.name
    contents = kind.render(field, name)
    if exact:
        [content] = contents.values()
        contents = {out.name: content}
    if levels:
        contents = {**contents, f"{name}_contours.geojson": as_contours(field, levels)}
    return write_new(out.parent, contents, overwrite=overwrite)


def check_out(out: Path | None) -> None:
    """Raise RunError if the file to write is a folder, or its folder does not exist."""
    if out is not None and out.is_dir():
        msg = f"{out}: is a folder; expected the name of a file, such as {out / 'map'}"
        raise RunError(msg)
    if out is not None and not out.parent.is_dir():
        msg = f"{out}: there is no folder {out.parent}; make it first"
        raise RunError(msg)


def write_new(folder: Path, contents: Files, *, overwrite: bool = False) -> list[Path]:
    """Write `contents` to a folder and return the paths. Raises RunError if a file exists."""
    there = [str(path) for each in contents if (path := folder / each).exists()]
    if there and not overwrite:
        msg = (
            f"{', '.join(there)}: there already; name another file with --out, or give --overwrite"
        )
        raise RunError(msg)
    return [write_whole(folder / each, content) for each, content in contents.items()]


def format_of(name: str, others: Iterable[str] = ()) -> Format:
    """Return a format by its name. Raises RunError with all names, also of `others`."""
    if name == "ros":
        msg = "format ros was removed: export pgm, and Nav2's map_server publishes it"
        raise RunError(msg)
    if name not in FORMATS:
        known = [*FORMATS, *others]
        msg = f"no format {name!r}; expected one of {', '.join(known)}.{suggest(name, known)}"
        raise RunError(msg)
    return FORMATS[name]
