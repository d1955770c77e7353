"""Features of GIS files: KML, KMZ, shapefiles and GeoPackages with GDAL (pyogrio), and GeoJSON.

GDAL chooses a driver by content, and some drivers read other files. pyogrio cannot choose the
driver, so this module checks the content first. GDAL reads a wrong coordinate as 0, so this module
also checks the coordinates of KML.
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

from gp_active_sensing.errors import MapError, brief_repr
from gp_active_sensing.topology.geometry import simple
from gp_active_sensing.topology.loaders import (
    MOST_TEXT,
    check_file,
    declared_crs,
    expected,
    fault,
    number_of,
    read_json,
)
from gp_active_sensing.topology.projection import LOCAL, LONLAT
from gp_active_sensing.topology.segments import Point
from gp_active_sensing.util.lazy import library
from gp_active_sensing.util.xml_files import elements, tag_of, whole_bytes

MOST_FEATURES = 10_000
_MOST_LAYERS = 200
"""Largest number of layers in a file; in KML, each folder is a layer."""
_NAMES = ("name", "title", "label", "id")
_OTHER_FILES = re.compile(rb"OGRVRT|VRTDataset|opengis\.net/(gml|wfs|wms)|GDAL_WMS|WFSDataSource")
"""Pattern of descriptions that refer to data in other files."""
_DRAWN = ("tessellate", "extrude", "visibility")
"""Columns that GDAL adds for the drawing style of KML."""
_DRAWN_SHAPES = re.compile(
    rb"<(?:\w+:)?(Point|LineString|LinearRing|Polygon|Track|LatLonQuad)[\s/>]"
)
"""Pattern of the XML tags of shapes in KML."""
_NO_TAGS = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>", re.DOTALL)
"""Comments and texts of XML, which may contain text that looks like tags."""
_UNDEFINED = ("ENGCRS", "LOCAL_CS", "ENGINEERINGCRS")


@dataclass(frozen=True)
class Feature:
    """Shape in a file, and its properties."""

    where: str  # position in the file, for messages
    name: str  # "" = no name
    folder: str  # name of the KML folder or the layer
    tags: Mapping[str, str]  # properties as text, by name in lower case
    geometry: Any  # shapely geometry in the coordinates of the file, or None


@dataclass
class VectorFile:
    """Features of a file in file order; `crs` is the coordinate system, "" = not declared."""

    crs: str = ""
    features: list[Feature] = field(default_factory=list)

    def add(self, folder: str, tags: Mapping[str, Any], geometry: Any, path: Path) -> None:
        """Add a feature; keys of properties become lower case."""
        known = {str(k).lower(): _text(v) for k, v in tags.items() if _text(v)}
        name = next((known[key] for key in _NAMES if key in known), "")
        where = f"feature {len(self.features)}" + (f" ({name!r:.60})" if name else "")
        if len(self.features) == MOST_FEATURES:
            raise fault(path, f"has more than {MOST_FEATURES} features; cut it down to the area")
        self.features.append(Feature(where, name, folder, known, geometry))


@dataclass(frozen=True)
class Shape:
    """Polygon, circle or corridor."""

    where: str  # position in the file, for messages
    # in the coordinates of the file: Polygon, centre of a circle, or middle line of a corridor
    geometry: Any
    name: str = ""  # "" = no name
    # "outline", "fence" (all places lie inside), "obstacle" or "region"; "" = unknown
    role: str = ""
    weight: float | None = None  # weight of the places in a region
    radius: float = 0.0  # radius of a circle [m]
    width: float = 0.0  # whole width of a corridor [m]


@dataclass
class Drawing:
    """Shapes in a file of areas."""

    crs: str = LONLAT  # coordinate system, "" = not declared
    shapes: list[Shape] = field(default_factory=list)  # in the order of the file
    others: Counter[str] = field(default_factory=Counter)  # number of unused items of each kind
    home: Point | None = None  # start of a mission
    notes: list[str] = field(default_factory=list)  # sentences on assumptions


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).strip()


def read_features(path: Path) -> VectorFile:
    """Read the features of a file in the format of its ending.

    Raises:
        MapError: the file cannot be read, is damaged, or has another format.
        MissingDependencyError: the format needs pyogrio, which is missing.
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
    """Return whether all shapes of a file are points. Raises the errors of `read_features`."""
    check_file(path, MOST_TEXT)
    if path.suffix.lower() in (".kml", ".kmz"):
        whole = _NO_TAGS.sub(b"", whole_bytes(path))
        drawn = {found[1] for found in _DRAWN_SHAPES.finditer(whole)}
        if not drawn & {b"Track", b"LatLonQuad"}:  # GDAL reads some of them, in its own way.
            return drawn == {b"Point"}
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
        got = brief_repr(geometry)
        raise fault(where, f"expected a geometry of GeoJSON, got {got} ({e})") from e


def _check_numbers(part: Any) -> None:
    """Raise TypeError if coordinates are not nested lists of numbers."""
    for entry in part:
        if isinstance(entry, list):
            _check_numbers(entry)
        elif isinstance(entry, bool) or not isinstance(entry, int | float):
            msg = f"the coordinates of a corner are {brief_repr(part)}"
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
    with path.open("rb") as stream:
        head = stream.read(72)
    start = b"\x00\x00\x27\x0a" if path.suffix.lower() == ".shp" else b"SQLite format 3"
    if not head.startswith(start):
        raise fault(path, f"does not begin as a {path.suffix} file does; save it again")
    return _gdal(path.absolute(), path)


def _gdal(source: Any, path: Path) -> VectorFile:
    use = f"{path}: a {path.suffix} file is read with pyogrio"
    pyogrio, read = library("pyogrio", use), library("pyogrio.raw", use).read
    found = VectorFile()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the checks below find every fault
            layers = pyogrio.list_layers(source).tolist()
            if len(layers) > _MOST_LAYERS:
                raise fault(path, f"has {len(layers)} folders or layers; expected {_MOST_LAYERS}")
            for index, (layer, kind) in enumerate(layers):
                if kind is None:  # a table without shapes
                    continue
                # Read layers by number: GDAL gives a folder without a name a new name each time.
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
