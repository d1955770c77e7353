"""Contents of an installation of the package: metadata, modules, commands."""

from __future__ import annotations

import importlib
import pkgutil
from importlib import metadata
from importlib.util import find_spec

import pytest

import gp_active_sensing_learning
from gp_active_sensing import __version__

NAME = "gp_active_sensing_learning"


def test_the_version_is_that_of_the_core() -> None:
    assert metadata.version(NAME) == __version__
    assert f"gp_active_sensing=={__version__}" in (metadata.requires(NAME) or [])


# What GPyTorch imports of PyTorch is deprecated there.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_module_can_be_imported() -> None:
    missing: set[str | None] = set()
    for module in pkgutil.walk_packages(gp_active_sensing_learning.__path__, f"{NAME}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            missing.add(error.name)
    assert missing <= {name for name in ("torch", "gpytorch") if find_spec(name) is None}
