"""Kernels on the workers of a dask scheduler: what one process gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("distributed")

from gp_active_sensing.errors import RunError
from gp_active_sensing_learning.kernel_selection import TrainingProgress, select_kernels
from learning_support.small import KERNELS, SMALL, rows, same
from tests.dask_cluster import fixture_address, fixture_scheduler

__all__ = ["fixture_address", "fixture_scheduler"]

# A busy machine makes dask complain about late heartbeats and slow event loops.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.heavy("learn"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_cluster_gives_what_one_process_gives(address: str) -> None:
    here = select_kernels(rows(), KERNELS, SMALL)
    told: list[TrainingProgress] = []
    there = select_kernels(rows(), KERNELS, SMALL, cluster=address, progress=told.append)
    assert there.names == here.names
    for a, b in zip(here.fits, there.fits, strict=True):
        same(a, b, tolerance=1e-5)
    np.testing.assert_allclose(here.belief.probabilities, there.belief.probabilities, atol=1e-6)
    assert len(told) > 1, "in several groups"
    assert told[-1].finished == told[-1].total == len(KERNELS)


def test_nobody_there() -> None:
    with pytest.raises(RunError):
        select_kernels(rows(), KERNELS[:1], SMALL, cluster="tcp://127.0.0.1:9")
