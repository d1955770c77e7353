from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

LIMIT = 200.0
"""Longest wait for something that should happen [s]: much longer than any machine needs. It only
says when a test gives up, so no test asserts on it or gives a smaller one."""
POLL = 0.005


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(POLL)
    pytest.fail(f"waited {LIMIT:g} s for {what}")
