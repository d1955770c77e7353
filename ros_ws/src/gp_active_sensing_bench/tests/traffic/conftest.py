from __future__ import annotations

from collections.abc import Iterator

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what uses the fixture `sumo`."""
    if "sumo" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.heavy("sumo"))


@pytest.fixture
def sumo() -> Iterator[None]:
    """What a test leaves running is ended."""
    yield
    from gp_active_sensing_bench.traffic import session

    if session._running is not None:
        session._running.close()
