"""Import names of a package and libraries of an extra on first use (PEP 562).

A probe thus loads only the modules of its own planner.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from gp_active_sensing.errors import MissingDependencyError


def lazy_names(
    package: str, sources: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for the ``__init__`` of a package.

    Args:
        package: ``__name__`` of the package.
        sources: names by their module relative to the package. No name may equal that of a module
            of the package, whose import would hide it.
    """
    where = {name: f"{package}.{module}" for module, names in sources.items() for name in names}

    def load(name: str) -> Any:
        if name not in where:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = getattr(import_module(where[name]), name)
        setattr(sys.modules[package], name, value)  # for later uses
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return load, names


def library(module: str, use: str, *, extra: str = "maps", besides: str = "") -> Any:
    """Return a module that an extra of the package installs.

    Args:
        module: name of the module.
        use: purpose, for the error.
        extra: name of the extra.
        besides: alternative, for the error.

    Raises:
        MissingDependencyError: the module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        how = f"pip install 'gp_active_sensing[{extra}]'{besides}"
        missing = isinstance(error, ModuleNotFoundError)
        msg = f"{use}, which {'is not installed' if missing else f'fails ({error})'}: {how}"
        raise MissingDependencyError(msg) from error
