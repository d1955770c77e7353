"""What an installation of the package has: metadata, modules, command, experiments."""

from __future__ import annotations

import importlib
import pkgutil
from importlib import metadata

import gp_active_sensing_bench
from gp_active_sensing import __version__

NAME = "gp_active_sensing_bench"


def test_the_version_is_that_of_the_core() -> None:
    assert metadata.version(NAME) == __version__
    assert f"gp_active_sensing=={__version__}" in (metadata.requires(NAME) or [])


def test_every_module_can_be_imported() -> None:
    for module in pkgutil.walk_packages(gp_active_sensing_bench.__path__, f"{NAME}."):
        importlib.import_module(module.name)
