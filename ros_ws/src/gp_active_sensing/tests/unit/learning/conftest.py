"""Learning needs PyTorch and GPyTorch: skipped without them, or failed where they must be."""

from __future__ import annotations

import importlib.util
import os
import warnings

import pytest


@pytest.fixture(scope="session")
def gpytorch_or_skip() -> None:
    missing = [name for name in ("torch", "gpytorch") if importlib.util.find_spec(name) is None]
    if missing:
        reason = f"{' and '.join(missing)} not installed (extra learn)"
        if os.environ.get("GPAS_REQUIRE_LEARN"):
            pytest.fail(f"{reason}, and GPAS_REQUIRE_LEARN is set")
        pytest.skip(reason)
    with warnings.catch_warnings():
        # Its import uses what PyTorch itself has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        import gpytorch  # noqa: F401
