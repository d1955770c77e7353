"""Versions of the packages that a run depends on, for its records."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from gp_active_sensing import __version__

__all__ = ["commit", "versions"]


def versions(packages: tuple[str, ...] = ("numpy", "scipy")) -> dict[str, str]:
    """Return the versions of this package, Python and `packages` (those that are installed)."""
    found = {"gp_active_sensing": __version__, "python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def commit(folder: Path | None = None) -> str:
    """Return the commit of the source tree that this package runs from; asked once a process.

    Args:
        folder: of the package; None = this one's.

    Returns:
        The hash, with "+changes" where anything in the tree differs from it; "" where there is no
        such tree: an installed package, or no git.
    """
    folder = Path(__file__).resolve().parents[1] if folder is None else folder
    if not _git(folder, "ls-files", "--error-unmatch", "__init__.py"):
        return ""  # an installation may lie inside a tree that is not its own
    head = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain")
    if not head or changed is None:
        return ""
    return f"{head}+changes" if changed else head


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints, None when it fails or is not there."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
