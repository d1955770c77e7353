"""Import a package's names and optional libraries on first use (PEP 562).

A program loads only the modules that it uses.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from gp_active_sensing._version import __version__
from gp_active_sensing.errors import MissingDependencyError


def lazy_names(
    package: str, sources: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for the ``__init__`` of a package.

    `sources` maps a module's name, relative to the package, to the names that it defines. A name
    must not equal a module's name, because importing the module would hide the name.
    """
    where = {name: f"{package}.{module}" for module, names in sources.items() for name in names}

    def load(name: str) -> Any:
        if name not in where:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = getattr(import_module(where[name]), name)
        setattr(sys.modules[package], name, value)  # for later access
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return load, names


def install_command(extra: str = "", package: str = "gp_active_sensing") -> str:
    """Return the command that installs a package of this project, with an extra.

    The command names the source folder if the program runs from there. Otherwise it names the wheel
    of the package.
    """
    folder = next(islice(Path(__file__).resolve().parents, 3, None), Path()) / package
    wheel = f"{package}-{__version__}-py3-none-any.whl"
    found = str(folder if (folder / "pyproject.toml").is_file() else wheel)
    return f"pip install {shlex.quote(f'{found}[{extra}]' if extra else found)}"


def library(module: str, use: str, *, extra: str = "maps", besides: str = "") -> Any:
    """Import and return an optional module, which an extra installs.

    Args:
        module: name of the module.
        use: purpose of the module, for the error message.
        extra: name of the extra.
        besides: alternative to the module, for the error message.

    Raises:
        MissingDependencyError: the module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        how = install_command(extra) + besides
        missing = isinstance(error, ModuleNotFoundError)
        msg = f"{use}, which {'is not installed' if missing else f'fails ({error})'}: {how}"
        raise MissingDependencyError(msg) from error
