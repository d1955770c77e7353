"""Commit of the source tree of the package."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import gp_active_sensing


@functools.cache
def commit(folder: Path | None = None) -> str:
    """Return the commit of the source tree of this package.

    Returns:
        The hash, with "+changes" for a changed tree; "" without a source tree or git.
    """
    folder = Path(gp_active_sensing.__file__).resolve().parent if folder is None else folder
    if not _git(folder, "ls-files", "--error-unmatch", "__init__.py"):
        return ""  # an installation may lie inside a foreign tree
    head = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain")
    if not head or changed is None:
        return ""
    return f"{head}+changes" if changed else head


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of git; None after a failure or without git."""
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
