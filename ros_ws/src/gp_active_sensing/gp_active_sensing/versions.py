"""What a run depends on, for its records."""

from __future__ import annotations

import platform
from importlib import metadata

from gp_active_sensing import __version__

__all__ = ["versions"]


def versions(packages: tuple[str, ...] = ("numpy", "scipy")) -> dict[str, str]:
    """Return the versions of this package, Python and `packages` (those that are installed)."""
    found = {"gp_active_sensing": __version__, "python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
