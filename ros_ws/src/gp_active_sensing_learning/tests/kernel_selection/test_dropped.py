"""Kernels whose bounds are not finite: what is said of them, and that nothing else is lost."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing_learning.kernel_selection import VbksConfig, select_kernels
from learning_support.small import rows
from tests.cases import for_each

pytestmark = pytest.mark.heavy("learn")

KERNELS = tuple(parse(name) for name in ("SE", "LIN"))
SMALL = VbksConfig(
    inducing=6, batch=16, iterations=100, restarts=1, evaluate_every=5, theta_samples=4,
    patience=1, tolerance=10.0, stages=(0.5, 1.0),
)  # fmt: skip


@pytest.fixture
def last_pass_spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact bound of LIN after the first stage is not finite; all its estimates are."""
    from gp_active_sensing_learning.kernel_selection.optimiser import Optimiser
    from gp_active_sensing_learning.kernel_selection.training import Training

    conclude, bound = Training._conclude, Optimiser.bound

    def concluding(self: Training) -> None:
        going = [self.population.member(i) for i in range(self.population.going)]
        assert all(member.outcome.startswith("converged") for member in going)
        names = [self.population.name(i) for i in range(self.population.going)]

        def spoilt(optimiser: Optimiser, state: Any, total: Any) -> Any:
            found = bound(optimiser, state, total).clone()
            found[[name == "LIN" for name in names]] = -math.inf
            return found

        with monkeypatch.context() as patch:
            patch.setattr(Optimiser, "bound", spoilt)
            conclude(self)

    monkeypatch.setattr(Training, "_conclude", concluding)


@pytest.mark.usefixtures("last_pass_spoilt")
def test_the_reason_is_that_and_not_what_went_well_before() -> None:
    model = select_kernels(rows(), KERNELS, SMALL)
    assert model.names == ("SE",)
    ((name, why),) = model.dropped
    assert name == "LIN"
    assert why.startswith("dropped: its bound was not finite, last at step ")
    assert np.isnan(model.history.bounds[:, model.history.names.index("LIN")]).all()


def test_a_checkpoint_goes_on_with_another_prior_of_the_belief(tmp_path: Path) -> None:
    select_kernels(rows(), KERNELS, SMALL, checkpoint=tmp_path)
    other = dataclasses.replace(SMALL, prior_std=3.0)
    resumed = select_kernels(rows(), KERNELS, other, checkpoint=tmp_path, resume=True)
    direct = select_kernels(rows(), KERNELS, other)
    np.testing.assert_array_equal(resumed.belief.probabilities, direct.belief.probabilities)


@for_each(
    ("key", "value"),
    [("prior_std", 1e6), ("seed", 2**63), ("restarts", 65), ("race", [0.5, 0.25]), ("race", [1.5])],
)
def test_settings_that_could_only_fail_at_the_end_are_refused(key: str, value: Any) -> None:
    from gp_active_sensing.config import from_mapping

    with pytest.raises(ConfigError, match=key):
        from_mapping(VbksConfig, {key: value})
