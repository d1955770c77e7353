"""Command ``doctor``: list installed and missing software, and how to install it."""

from __future__ import annotations

import dataclasses
import json
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

import click

from gp_active_sensing._version import __version__
from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.ros.environment import inspect_ros
from gp_active_sensing.util.lazy import install_command

if TYPE_CHECKING:
    from gp_active_sensing.registry import Registry

PACKAGE = "gp_active_sensing"
EXTRAS = {
    "plot": "pictures of maps",
    "maps": "maps in degrees, from OpenStreetMap, KML, shapefiles, GeoTIFF and images",
    "web": "the live page",
    "bag": "replay of bags",
    "sumo": "live traffic",
}
"""Purpose of each extra."""
PACKAGES = {
    "gp_active_sensing_learning": "learning length-scales and kernels (`learn`, `model`)",
    "gp_active_sensing_bench": "experiments and benchmarks (`experiment`)",
}
"""Purpose of each optional package of this project."""
HEAVY = frozenset({"sumo"})
"""Extras whose pinned versions `make heavy` installs."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(as_json: bool) -> None:
    """List what is installed, and how to install what is missing."""
    checks = examine()
    works = core_works(checks)
    if as_json:
        found = {"core_works": works, "checks": [dataclasses.asdict(check) for check in checks]}
        click.echo(json.dumps(found, indent=2))
    else:
        colours = {"ok": "green", "missing": "yellow", "error": "red"}
        for check in checks:
            click.secho(f"{check.status:<8}", fg=colours[check.status], nl=False)
            click.echo(f"{check.name:<20} {check.found}".rstrip())
            if check.remedy:
                click.echo(f"{'':<8}{'':<20} → {check.remedy}")
        verdict = "works" if works else "does not work"
        click.echo(f"The core (belief, planning, simulation) {verdict}.")
    sys.exit(0 if works else 1)


@dataclass(frozen=True)
class Check:
    """Result of one check of the installation.

    Args:
        name: name of the checked software.
        status: ok, missing or error.
        found: version or path; "" = not found.
        remedy: advice; "" = no advice needed.
        needed: True = the product package does not work without this software.
    """

    name: str
    status: str
    found: str = ""
    remedy: str = ""
    needed: bool = False


def core_works(checks: list[Check]) -> bool:
    """Return whether all needed software is installed."""
    return all(check.status == "ok" for check in checks if check.needed)


def version_of(name: str) -> str:
    """Return the version of an installed distribution; "" = not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def requirements() -> Iterator[tuple[str, str]]:
    """Yield (distribution, extra) for each requirement; extra "" = always required."""
    known = version_of(PACKAGE)  # unknown in a source tree that is not installed
    for text in (metadata.requires(PACKAGE) or ()) if known else ():
        extra = re.search(r"extra *== *['\"]([\w-]+)", text)
        yield re.split(r"[^\w.-]", text)[0], extra[1] if extra else ""


def examine(*, version: Callable[[str], str] = version_of) -> list[Check]:
    """Check the installation without heavy imports."""
    checks = [
        Check(PACKAGE, "ok", __version__, needed=True),
        Check("Python", "ok", platform.python_version(), needed=True),
    ]

    def look(name: str, remedy: str, *, needed: bool = False) -> None:
        found = version(name)
        missing = "" if found else remedy
        status = "ok" if found else "missing"
        checks.append(Check(name, status, found, missing, needed=needed))

    for name, extra in sorted(requirements(), key=lambda each: each[1]):
        if not extra:
            look(name, f"{install_command()}  (or: pip install {name})", needed=True)
        elif extra in EXTRAS:
            pinned = ", or in a checkout: make heavy" if extra in HEAVY else ""
            use = f"(for {EXTRAS[extra]}; the rest works without it)"
            look(name, f"{install_command(extra)}{pinned}  {use}")
    for name, use in PACKAGES.items():
        look(name, f"{install_command(package=name)}  (for {use}; a robot does not need it)")
    checks.append(_ros())
    if core_works(checks) and _plugin_groups():
        checks += _plugins()
    return checks


def _ros() -> Check:
    ros = inspect_ros()
    if ros.usable:
        return Check("ROS 2", "ok", ros.summary)
    status = "error" if ros.mixed else "missing"
    return Check("ROS 2", status, "" if ros.summary == "not found" else ros.summary, ros.advice)


def _plugin_groups() -> bool:
    """Return whether plug-ins may be installed, without importing the registries."""
    try:
        return any(group.startswith(f"{PACKAGE}.") for group in metadata.entry_points().groups)
    except Exception:  # damaged distribution, which the registries report
        return True


def _plugins() -> list[Check]:
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
