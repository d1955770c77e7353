"""This process: one BLAS thread, free memory handed back, and the versions that it runs."""

from __future__ import annotations

import ctypes
import os
import sys

from gp_active_sensing._version import __version__

__all__ = ["THREAD_VARIABLES", "hand_back", "one_blas_thread", "versions"]

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
