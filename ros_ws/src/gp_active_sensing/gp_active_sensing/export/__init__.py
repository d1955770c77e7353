"""The map as other programs read it: tables, GIS rasters and vectors, maps of a map server."""

from gp_active_sensing.export.field_map import FieldMap
from gp_active_sensing.export.formats import (
    FORMATS,
    check_format,
    export_map,
    format_of,
    rendered,
)

__all__ = [
    "FORMATS",
    "FieldMap",
    "check_format",
    "export_map",
    "format_of",
    "rendered",
]
