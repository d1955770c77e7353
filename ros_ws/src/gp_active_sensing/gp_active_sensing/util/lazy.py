"""Import the public names of a package on first use (PEP 562).

A package's ``__init__`` says where its names are. Asking it for one name then imports one module,
not the whole package: a probe loads the planner that it runs and not the other twenty.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


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
