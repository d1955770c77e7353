"""The command ``doctor``: what is installed, what is missing and how to install it."""

from __future__ import annotations

import dataclasses
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gp_active_sensing._version import __version__
from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.ros.environment import inspect_ros, is_importable

if TYPE_CHECKING:
    from gp_active_sensing.registry import Registry


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(as_json: bool) -> None:
    """List what is installed and how to install the rest."""
    diagnosis = examine()
    if as_json:
        click.echo(json.dumps(diagnosis.to_mapping(), indent=2))
    else:
        colours = {"ok": "green", "missing": "yellow", "error": "red"}
        for check in diagnosis.checks:
            click.secho(f"{check.status:<8}", fg=colours[check.status], nl=False)
            click.echo(f"{check.name:<20} {check.found}".rstrip())
            if check.remedy:
                click.echo(f"{'':<8}{'':<20} → {check.remedy}")
        works = "works" if diagnosis.core_works else "does not work"
        click.echo(f"The core (belief, planning, simulation) {works}.")
    sys.exit(0 if diagnosis.core_works else 1)


PACKAGE = "gp_active_sensing"
CORE = {
    "numpy": "numpy",
    "scipy": "scipy",
    "shapely": "shapely",
    "pyyaml": "yaml",
    "defusedxml": "defusedxml",
    "click": "click",
    "rich": "rich",
}
"""Distribution -> module, of what every use needs."""

OPTIONAL = {
    "matplotlib": ("matplotlib", "plot", "pictures of maps"),
    "pyproj": ("pyproj", "maps", "maps in longitude and latitude"),
    "osmium": ("osmium", "maps", "maps from OpenStreetMap"),
    "pillow": ("PIL", "maps", "PNG maps of map_server"),
    "pyogrio": ("pyogrio", "maps", "KML, shapefile, GeoPackage"),
    "rasterio": ("rasterio", "maps", "GeoTIFF"),
    "networkx": ("networkx", "maps", "graphs from Python"),
    "tornado": ("tornado", "web", "the live page"),
    "rosbags": ("rosbags", "bag", "replay of bags"),
    "mcap": ("mcap", "bag", "replay of damaged bags"),
    "libsumo": ("libsumo", "sumo", "live traffic"),
}
"""Distribution -> module, extra, what it is for."""
PACKAGES = {
    "gp_active_sensing_learning": "learning length-scales and kernels (`learn`, `model`)",
    "gp_active_sensing_bench": "experiments and benchmarks (`experiment`)",
}
"""Packages beside this one, which a robot does not need -> what they are for."""

HEAVY = frozenset({"sumo"})
"""Extras whose pinned versions `make heavy` adds; those of the others are there already."""

OLDEST_PYTHON = (3, 10)


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Args:
        name: what.
        status: ok, missing or error.
        found: version or place, "" when there is none.
        remedy: what to do about it, "" when nothing is to be done.
        needed: the core does not work without it.
    """

    name: str
    status: str
    found: str = ""
    remedy: str = ""
    needed: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """Everything that was looked at."""

    checks: tuple[Check, ...]

    @property
    def core_works(self) -> bool:
        """Everything needed by simulation, belief and planning is there."""
        return all(check.status == "ok" for check in self.checks if check.needed)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data."""
        checks = [dataclasses.asdict(check) for check in self.checks]
        return {"core_works": self.core_works, "checks": checks}


def examine(*, can_import: Callable[[str], bool] = is_importable) -> Diagnosis:
    """Look at the installation; nothing heavy is imported.

    Args:
        can_import: says whether a module can be imported.
    """
    checks = [Check(PACKAGE, "ok", __version__, needed=True), _python()]
    for name, module in CORE.items():
        remedy = f"pip install {PACKAGE}  (or: pip install {name})"
        checks.append(_package(name, module, can_import, remedy, needed=True))
    for name, (module, extra, use) in OPTIONAL.items():
        pinned = ", or in a checkout: make heavy" if extra in HEAVY else ""
        remedy = f"pip install '{PACKAGE}[{extra}]'{pinned}  (for {use}; the rest works without it)"
        checks.append(_package(name, module, can_import, remedy, needed=False))
    for name, use in PACKAGES.items():
        remedy = f"pip install ros_ws/src/{name}  (for {use}; a robot does not need it)"
        checks.append(_package(name, name, can_import, remedy, needed=False))
    checks.append(_ros())
    checks += [_files("sim", "scenarios")]
    checks.append(_files("maps", "maps"))
    if all(check.status == "ok" for check in checks if check.needed) and _plugin_groups():
        checks += _plugins()
    return Diagnosis(tuple(checks))


def _python() -> Check:
    found = platform.python_version()
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check("Python", "ok", found, needed=True)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Check("Python", "error", found, f"use Python {oldest} or newer", needed=True)


def _package(
    name: str, module: str, can_import: Callable[[str], bool], remedy: str, *, needed: bool
) -> Check:
    if not can_import(module):
        return Check(name, "missing", "", remedy, needed=needed)
    from importlib import metadata

    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        found = "version unknown"
    return Check(name, "ok", found, needed=needed)


def _ros() -> Check:
    ros = inspect_ros()
    if ros.usable:
        return Check("ROS 2", "ok", ros.summary)
    status = "error" if ros.mixed else "missing"
    return Check("ROS 2", status, "" if ros.summary == "not found" else ros.summary, ros.advice)


def _files(kind: str, what: str) -> Check:
    from gp_active_sensing.util.resources import list_resources

    name = f"shipped {what}"
    try:
        beside = (".csv", ".trips.xml.gz")  # they belong to a map
        names = [entry for entry in list_resources(kind) if not entry.endswith(beside)]
    except (OSError, ActiveSensingError) as error:
        return Check(name, "error", "", str(error))
    if not names:
        return Check(name, "missing", "", f"install {PACKAGE} again: its {kind} are not there")
    return Check(name, "ok", ", ".join(names))


def _plugin_groups() -> bool:
    """Return whether there may be a plug-in; the registries themselves take a moment to import."""
    from importlib import metadata

    try:
        return any(group.startswith(f"{PACKAGE}.") for group in metadata.entry_points().groups)
    except Exception:  # a damaged distribution, which the registries name
        return True


def _plugins() -> list[Check]:
    """Try every plug-in; one that is broken leaves the core as it is."""
    from gp_active_sensing.kernels import graph_kernels, kernels
    from gp_active_sensing.planning import policies
    from gp_active_sensing.topology.loaders import loaders

    registries: tuple[Registry[Any], ...] = (policies, kernels, graph_kernels, loaders)
    checks = []
    for registry in registries:
        for name, origin in registry.plugins().items():
            try:
                registry.factory(name)
            except ActiveSensingError as error:
                checks.append(Check(f"{registry.kind} {name}", "error", origin, str(error)))
            else:
                checks.append(Check(f"{registry.kind} {name}", "ok", origin))
    return checks
