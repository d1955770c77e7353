"""Import on first use: the public names of a package (PEP 562), libraries of an extra.

A package's ``__init__`` says where its names are. Asking it for one name then imports one module,
not the whole package: a probe loads the planner that it runs and not the other twenty.
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
        package: its ``__name__``.
        sources: module, relative to the package -> the names that come from it. No name may be
            that of a module of the package, since the import of that module would hide it.
    """
    where = {name: f"{package}.{module}" for module, names in sources.items() for name in names}

    def load(name: str) -> Any:
        if name not in where:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = getattr(import_module(where[name]), name)
        setattr(sys.modules[package], name, value)  # so that the next use does not come here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return load, names


def library(module: str, use: str, *, extra: str = "maps", besides: str = "") -> Any:
    """Return a module that an extra of the package installs.

    `use` says what is done with it, `besides` what else one can do, for the message.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        how = f"pip install 'gp_active_sensing[{extra}]'{besides}"
        missing = isinstance(error, ModuleNotFoundError)
        msg = f"{use}, which {'is not installed' if missing else f'fails ({error})'}: {how}"
        raise MissingDependencyError(msg) from error
