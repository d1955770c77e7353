"""Features of GIS files: KML, KMZ, shapefiles and GeoPackages by GDAL (pyogrio), and GeoJSON.

GDAL picks a driver by content: a description of a virtual layer with the name of a KML file reads
other files. pyogrio cannot name the driver, so what a file holds is looked at first. GDAL also
takes a coordinate that is no number for 0; the coordinates of KML are checked before.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.errors import MapError
from gp_active_sensing.topology.geometry import simple
from gp_active_sensing.topology.loaders import (
    declared_crs,
    elements,
    expected,
    fault,
    number_of,
    read_json,
    shown,
    tag_of,
    whole_bytes,
)
from gp_active_sensing.topology.projection import LOCAL, LONLAT
from gp_active_sensing.topology.segments import Point
from gp_active_sensing.util.lazy import library

MOST_FEATURES = 10_000
"""Largest number of shapes of a file."""
_MOST_LAYERS = 200
"""Folders of a KML file; each is read by itself."""
_NAMES = ("name", "title", "label", "id")
_OTHER_FILES = re.compile(rb"OGRVRT|VRTDataset|opengis\.net/(gml|wfs|wms)|GDAL_WMS|WFSDataSource")
"""Prefixes of descriptions of data that lie elsewhere."""
_DRAWN = ("tessellate", "extrude", "visibility")
"""Columns that GDAL makes of how KML is drawn; they say nothing of a place."""
_DRAWN_SHAPES = re.compile(rb"<(?:\w+:)?(Point|Line\w+|Polygon)[\s/>]")
"""Tags of the shapes of KML."""
_UNDEFINED = ("ENGCRS", "LOCAL_CS", "ENGINEERINGCRS")


@dataclass(frozen=True)
class Feature:
    """Shape of a file, with its properties."""

    where: str  # in the file, for messages
    name: str  # of its author, "" if none
    folder: str  # name of the folder of KML, or of the layer, that it is in
    tags: Mapping[str, str]  # properties by name, in lower case, as text
    geometry: Any  # of shapely, in the coordinates of the file; None where there is none


@dataclass
class VectorFile:
    """Contents of a file, in its order; crs "" = not given."""

    crs: str = ""
    features: list[Feature] = field(default_factory=list)

    def add(self, folder: str, tags: Mapping[str, Any], geometry: Any, path: Path) -> None:
        """Add a feature; keys of properties count in any case."""
        known = {str(k).lower(): _text(v) for k, v in tags.items() if _text(v)}
        name = next((known[key] for key in _NAMES if key in known), "")
        where = f"feature {len(self.features)}" + (f" ({name!r:.60})" if name else "")
        if len(self.features) == MOST_FEATURES:
            raise fault(path, f"has more than {MOST_FEATURES} features; cut it down to the area")
        self.features.append(Feature(where, name, folder, known, geometry))


@dataclass(frozen=True)
class Shape:
    """A polygon, a circle or a corridor."""

    where: str  # for messages
    # of shapely in the coordinates of the file: a Polygon; of a circle its middle, a Point; of a
    # corridor its middle line
    geometry: Any
    name: str = ""  # of the file's author, "" if none
    # "outline", "fence" (nothing lies outside), "obstacle", "region" (counts by its weight); "" =
    # not said
    role: str = ""
    weight: float | None = None  # of a region
    radius: float = 0.0  # of a circle [m]
    width: float = 0.0  # of a corridor, half of it on either side of the line [m]


@dataclass
class Drawing:
    """Contents of a file of areas."""

    crs: str = LONLAT  # of its coordinates, "" where it does not say
    shapes: list[Shape] = field(default_factory=list)  # in the order of the file
    # how many there are of what is no polygon, by its name
    others: Counter[str] = field(default_factory=Counter)
    home: Point | None = None  # where a mission begins
    notes: list[str] = field(default_factory=list)  # what was taken for granted, a sentence each


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).strip()


def read_features(path: Path) -> VectorFile:
    """Read the features of a file in the format that the end of its name says.

    Raises:
        MapError: the file cannot be read, is damaged, or holds something else.
        MissingDependencyError: pyogrio is needed and missing.
    """
    import shapely

    end = path.suffix.lower()
    read = _geojson if end in (".geojson", ".json") else _kml if end[:3] == ".km" else _file
    found = read(path)
    shapes = np.array([feature.geometry for feature in found.features], dtype=object)
    given, owner = shapely.get_coordinates(shapes, return_index=True)
    if len(bad := owner[~np.isfinite(given).all(axis=1)]):
        raise fault(path, f"{found.features[bad[0]].where}: expected finite coordinates")
    return found


def only_points(path: Path) -> bool:
    """Return whether a file of GIS has points and no other shapes. Raises as `read_features`."""
    if path.suffix.lower() in (".kml", ".kmz"):
        return set(_DRAWN_SHAPES.findall(whole_bytes(path))) == {b"Point"}
    features = read_features(path).features
    return {part.geom_type for f in features for part in simple(f.geometry)} == {"Point"}


def _geojson(path: Path) -> VectorFile:
    whole = read_json(path)
    if not isinstance(whole, dict):
        raise expected(path, "", "a GeoJSON object", type(whole).__name__)
    found = VectorFile(declared_crs(whole))
    features = whole.get("features") if whole.get("type") == "FeatureCollection" else [whole]
    if not isinstance(features, list):
        raise expected(path, "", "a list of features", features)
    for number, feature in enumerate(features):
        if not isinstance(feature, dict):
            raise expected(path, f"feature {number}", "an object", feature)
        tags = feature.get("properties")
        own_id = {"id": feature["id"]} if "id" in feature else {}
        geometry = feature if feature.get("type") != "Feature" else feature.get("geometry")
        shape = None if geometry is None else _shape(geometry, f"{path}: feature {number}")
        found.add("", own_id | (tags if isinstance(tags, dict) else {}), shape, path)
    return found


def _shape(geometry: Any, where: str) -> Any:
    import shapely.geometry

    try:
        kind, parts = geometry["type"], geometry.get("coordinates", ())
        _check_numbers(parts)
        if kind in ("Polygon", "MultiPolygon"):
            polygons = [parts] if kind == "Polygon" else parts
            if not polygons or not all(rings and all(rings) for rings in polygons):
                raise fault(where, "a polygon without corners")
        return shapely.geometry.shape(geometry)
    except (AttributeError, LookupError, TypeError, ValueError, shapely.errors.ShapelyError) as e:
        raise fault(where, f"expected a geometry of GeoJSON, got {shown(geometry)} ({e})") from e


def _check_numbers(part: Any) -> None:
    """Refuse coordinates that are no lists of lists of numbers. Raises TypeError."""
    for entry in part:
        if isinstance(entry, list):
            _check_numbers(entry)
        elif isinstance(entry, bool) or not isinstance(entry, int | float):
            msg = f"the coordinates of a corner are {shown(part)}"
            raise TypeError(msg)


def _kml(path: Path) -> VectorFile:
    drawn: Counter[str] = Counter()
    for number, mark in enumerate(elements(path, ("Placemark",), root="kml")):
        where = f"{path}: placemark {number}"
        for element in mark.iter():
            drawn[tag_of(element)] += 1
            if tag_of(element) == "Polygon":
                if sum(tag_of(side) == "outerBoundaryIs" for side in element) != 1:
                    raise fault(where, "expected one outerBoundaryIs in a Polygon")
            if tag_of(element) == "coordinates":
                for word in re.sub(r"\s*,\s*", ",", element.text or "").split():
                    pair = [number_of(part) for part in word.split(",")][:2]
                    if len(pair) < 2 or any(n is None or not math.isfinite(n) for n in pair):
                        what = "longitude,latitude in degrees"
                        raise expected(where, "coordinates", what, word)
    data = whole_bytes(path)
    if other := _OTHER_FILES.search(data):
        raise fault(path, f"refers to data in another file ({other[0]!r}), which is not read")
    found = _gdal(data, path)
    read = Counter(part.geom_type for f in found.features for part in simple(f.geometry))
    for kind in ("Polygon", "LineString", "Point"):
        if read[kind] < drawn[kind]:
            raise fault(
                path,
                f"only {read[kind]} of its {drawn[kind]} {kind}s can be read; save it "
                "again, with all placemarks in one Document",
            )
    return found


def _file(path: Path) -> VectorFile:
    """Read a shapefile or a GeoPackage, which GDAL knows by its first bytes."""
    with path.open("rb") as stream:
        head = stream.read(72)
    start = b"\x00\x00\x27\x0a" if path.suffix.lower() == ".shp" else b"SQLite format 3"
    if not head.startswith(start):
        raise fault(path, f"does not begin as a {path.suffix} file does; save it again")
    return _gdal(path.absolute(), path)


def _gdal(source: Any, path: Path) -> VectorFile:
    """Read all layers of a file whose content was looked at."""
    use = f"{path}: a {path.suffix} file is read with pyogrio"
    pyogrio, read = library("pyogrio", use), library("pyogrio.raw", use).read
    found = VectorFile()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is an error, or is seen below
            layers = pyogrio.list_layers(source).tolist()
            if len(layers) > _MOST_LAYERS:
                raise fault(path, f"has {len(layers)} folders or layers; expected {_MOST_LAYERS}")
            for index, (layer, kind) in enumerate(layers):
                if kind is None:  # a table without shapes
                    continue
                # By its number: a folder without a name has another one whenever it is opened.
                meta, _, shapes, columns = read(source, layer=index, force_2d=True)
                folder = "" if layer.startswith("pyogrio_") else layer
                crs = str(meta["crs"] or "")
                crs = LOCAL if crs.upper().startswith(_UNDEFINED) else crs
                if found.features and crs != found.crs:
                    two = f"two coordinate systems, {found.crs:.40} and {crs:.40}"
                    raise fault(path, f"its layers are in {two}")
                found.crs = crs
                names = list(meta["fields"])
                rows = zip(*columns, strict=True) if columns else ([] for _ in shapes)
                for shape, row in zip(shapes, rows, strict=True):
                    tags = dict(zip(names, row, strict=True))
                    tags = {k: v for k, v in tags.items() if k not in _DRAWN or v not in (-1, 0, 1)}
                    where = f"{path}: feature {len(found.features)}"
                    found.add(folder, tags, _of_bytes(shape, where), path)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, ValueError) as error:
        if isinstance(error, MapError):
            raise
        raise fault(path, f"cannot be read as a {path.suffix} file: {error!s:.200}") from error
    return found


def _of_bytes(data: bytes | None, where: str) -> Any:
    """Return a geometry of well-known binary; rings are closed where they are not."""
    import shapely

    if not data:
        return None
    with suppress(shapely.errors.GEOSException):
        return shapely.from_wkb(data)
    try:
        return shapely.from_wkb(data, on_invalid="fix")
    except (ValueError, shapely.errors.GEOSException) as error:
        raise fault(
            where, f"{error}; expected rings of 3 corners or more that end where they begin"
        ) from error
