"""Find the shipped maps, scenarios and configurations.

Their folder depends on the kind of installation (colcon, pip or editable).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gp_active_sensing.errors import ResourceError, UnknownNameError, suggest

KINDS = ("maps", "sim", "experiments", "config", "launch", "rviz", "foxglove", "bags")
"""Kinds of resources; each kind has a folder of this name."""

DATA_VARIABLE = "GPAS_DATA"
"""Environment variable with the folder of the user's data."""

_PACKAGE = "gp_active_sensing"
_OTHERS = {"experiments": "gp_active_sensing_bench"}
"""Other packages that ship resources, by kind."""
_SUFFIXES = {
    "bags": (".mcap", ".db3"),
    "experiments": (".yaml", ".yml"),
    "maps": tuple(
        ".asc .csv .geojson .graphml .gz .json .kml .kmz .osm .pbf .plan .xml .yaml".split()
    ),
}
"""File suffixes of resources, for kinds whose folders also contain other files."""


def resource_folders(kind: str) -> tuple[Path, ...]:
    """Return the folders that may contain resources of a kind, in search order.

    These are folders under ``AMENT_PREFIX_PATH``, under the installation prefixes of the
    interpreter and of this package, and in the source tree. Some folders may not exist.

    Raises:
        UnknownNameError: the kind is not in ``KINDS``.
    """
    if kind not in KINDS:
        message = f"unknown kind of resource {kind!r}.{suggest(kind, KINDS)} Known: {list(KINDS)}"
        raise UnknownNameError(message)
    here = Path(__file__).resolve()
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    prefixes.append(Path(sys.prefix))
    # The prefix in <prefix>/lib/python3.x/site-packages/gp_active_sensing/util/resources.py
    # differs from the interpreter's with `pip install --user` or a distribution's Python.
    if len(here.parents) > 5 and here.parents[4].name.startswith("lib"):
        prefixes.append(here.parents[5])
    package = _OTHERS.get(kind, _PACKAGE)
    folders = [prefix / "share" / package / kind for prefix in prefixes]
    sources = here.parents[3] / package  # packages of a source tree
    if (sources / "package.xml").is_file():
        folders.append(sources / kind)
    return tuple(dict.fromkeys(folders))


def list_resources(kind: str) -> tuple[str, ...]:
    """Return the sorted names of the resources of a kind, without README files.

    Names are paths relative to the folder of the kind, with ``/`` between folders.

    Raises:
        UnknownNameError: the kind is not in ``KINDS``.
    """
    return tuple(
        sorted({name for folder in resource_folders(kind) for name in _names(kind, folder)})
    )


def is_shipped(path: Path) -> bool:
    """Return whether a file or folder lies in a folder of shipped resources."""
    return any(path.is_relative_to(folder) for kind in KINDS for folder in resource_folders(kind))


def find_resource(kind: str, name: str | os.PathLike[str]) -> Path:
    """Return the path of a shipped file or of a user's file.

    Args:
        kind: one of ``KINDS``.
        name: path of a file, name as in ``list_resources``, or path relative to the folder in
            ``GPAS_DATA``. A unique name needs no suffix.

    Raises:
        ResourceError: there is no such file, or a name without suffix fits several files.
        UnknownNameError: the kind is not in ``KINDS``.
    """
    wanted = os.fspath(name)
    given = Path(wanted).expanduser()
    folders = resource_folders(kind)
    if given.is_file():
        return given
    for folder in folders:
        if (folder / wanted).is_file():
            return folder / wanted
        same_stem = [
            n for n in _names(kind, folder) if Path(n).with_suffix("").as_posix() == wanted
        ]
        if len(same_stem) > 1:
            message = (
                f"{kind}: {wanted!r} fits {' and '.join(same_stem)} in {folder}; give one of them"
            )
            raise ResourceError(message)
        if same_stem:
            return folder / same_stem[0]
    data = os.environ.get(DATA_VARIABLE)
    if data and (Path(data).expanduser() / wanted).is_file():
        return Path(data).expanduser() / wanted
    raise ResourceError(_not_found(kind, wanted, given, folders))


def _names(kind: str, folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    suffixes = _SUFFIXES.get(kind)
    relative = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return sorted(
        path.as_posix()
        for path in relative
        if not any(part.startswith((".", "__pycache__")) for part in path.parts)
        and not path.name.startswith("README")
        and (suffixes is None or path.suffix in suffixes)
    )


def _not_found(kind: str, wanted: str, given: Path, folders: tuple[Path, ...]) -> str:
    known = list_resources(kind)
    stems = [Path(name).with_suffix("").as_posix() for name in known]
    bare = [s if stems.count(s) == 1 else name for s, name in zip(stems, known, strict=True)]
    hint = suggest(wanted, known if Path(wanted).suffix else bare)
    available = f"Available: {', '.join(known)}." if known else "None is installed."
    data = os.environ.get(DATA_VARIABLE)
    places = (given.absolute(), *folders, *([Path(data).expanduser()] if data else []))
    searched = "".join(f"\n  {place}" for place in places)
    unset = "" if data else f"\n  {DATA_VARIABLE} is not set; it may name a folder of data"
    return (
        f"{kind}: no file {wanted!r}.{hint} {available}\nSearched:{searched}{unset}\n"
        f"Give the path of an existing file; reinstall the package if its folder {kind} is missing"
    )
