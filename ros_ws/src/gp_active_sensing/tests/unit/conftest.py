from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.browser import NAMES, Browser, find_browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One headless browser for all tests; without one they skip, or fail where one must be."""
    if find_browser() is None:
        reason = f"no browser on PATH ({', '.join(NAMES)})"
        if os.environ.get("GPAS_REQUIRE_BROWSER"):
            pytest.fail(f"{reason}, and GPAS_REQUIRE_BROWSER is set")
        pytest.skip(reason)
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started
