"""This process: one BLAS thread, free memory handed back, and the versions that it runs."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

from gp_active_sensing._version import __version__

__all__ = ["THREAD_VARIABLES", "commit", "hand_back", "one_blas_thread", "versions"]

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def one_blas_thread() -> None:
    """Ask BLAS for one thread, unless the user has asked for something else.

    Results are then reproducible to the bit, and small matrices faster: with two threads on a busy
    two-core machine, choosing a place by `ie` took 50 ms instead of 0.7 ms, since the threads wait
    for each other.

    Only programs call this, never the library, and before numpy is loaded: BLAS reads the
    environment then.
    """
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")


def hand_back() -> bool:
    """Hand free memory back to the system, where the C library can be asked to (glibc).

    It keeps what a large piece of work needed for a moment. A node that reads a long journal at its
    start would hold that memory for the rest of the mission.

    Returns:
        Whether it was asked.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # another C library
        return False
    return True


def versions(packages: tuple[str, ...] = ("numpy", "scipy")) -> dict[str, str]:
    """Return the versions of this package, Python and `packages` (those that are installed)."""
    import platform  # so that the command line starts at once
    from importlib import metadata

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
    import subprocess

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
