from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sumo import demand_sumo


@pytest.fixture
def sumo() -> Iterator[None]:
    """SUMO is there; what a test leaves running is ended."""
    demand_sumo()
    yield
    from gp_active_sensing.sim.traffic import session

    if session._running is not None:
        session._running.close()
