"""Commit of the source tree that contains this package."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import gp_active_sensing


@functools.cache
def commit(folder: Path | None = None) -> str:
    """Return the hash of the commit, followed by "+changes" if files were changed.

    "" = the package is not in a source tree, or git is not installed.
    """
    folder = Path(gp_active_sensing.__file__).resolve().parent if folder is None else folder
    if not _git(folder, "ls-files", "--error-unmatch", "__init__.py"):
        return ""  # the package may be installed inside another project's tree
    head = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain")
    if not head or changed is None:
        return ""
    return f"{head}+changes" if changed else head


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of git; None = git failed or is not installed."""
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
