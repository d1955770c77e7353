"""What `make heavy` adds to the environment, and the tests that need it.

A test says so by the marker ``heavy(extra)``, with an extra of setup.py. Without that extra it
skips; with ``GPAS_REQUIRE_HEAVY`` in the environment it fails instead. `.ci/run` runs the suite
once without these libraries, and then ``-m heavy`` with them, so no test may miss the marker.
"""

from __future__ import annotations

import importlib.util
import os
import warnings

import pytest

EXTRAS = {"learn": ("torch", "gpytorch"), "sumo": ("libsumo",)}
"""The modules of each heavy extra."""


def why_not(extra: str) -> str:
    """Return why what needs an extra cannot run, "" where it can."""
    missing = [name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return f"{' and '.join(missing)} not installed (extra [{extra}]; `make heavy`)"


def demand(extra: str) -> None:
    """Skip the test where an extra is missing, or fail where it must be there."""
    if reason := why_not(extra):
        if os.environ.get("GPAS_REQUIRE_HEAVY"):
            pytest.fail(f"{reason}, and GPAS_REQUIRE_HEAVY is set")
        pytest.skip(reason)
    if extra == "learn":
        with warnings.catch_warnings():
            # Its import uses what PyTorch itself has deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            import gpytorch  # noqa: F401
