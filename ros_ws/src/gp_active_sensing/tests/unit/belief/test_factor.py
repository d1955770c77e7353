"""Predictions from the cache equal new solves for the whole map."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.belief import Belief, BeliefConfig, build_belief, factor


def made(seed: int, *, scale_known: bool = True) -> Belief:
    features = np.random.default_rng([5, seed]).uniform(0.0, 30.0, (40, 2))
    known = {"signal_std": (2.0,), "noise_std": (0.3,)} if scale_known else {}
    config = BeliefConfig(length_scales=(2.0, 5.0, 11.0), kernel="matern32", **known)  # type: ignore[arg-type]
    return build_belief(config, features)


def read(belief: Belief, rng: np.random.Generator) -> None:
    variance = float(rng.uniform(0.1, 3.0)) if rng.random() < 0.3 and belief.scale_known else None
    belief.observe(int(rng.integers(40)), float(rng.normal(1.0, 2.0)), variance)


def check(belief: Belief) -> None:
    everywhere = np.arange(belief.n)
    for kept, again in zip(belief.marginals(), belief.marginals(everywhere), strict=True):
        np.testing.assert_allclose(kept, again, rtol=1e-9, atol=1e-10)


def test_other_candidates_begin_anew() -> None:
    config = BeliefConfig(length_scales=None, signal_std=(1.0,), noise_std=(0.05,))
    x = np.linspace(0.0, 60.0, 61)[:, None]
    belief = build_belief(config, x)
    changes = 0
    for i, place in enumerate(np.random.default_rng(8).permutation(61)[:40].tolist()):
        belief.observe(place, float(np.sin(3.0 * x[place, 0]) + 0.01 * i))
        changes += bool(belief.adapt())
        check(belief)
    assert changes, "the field is rough: the grid must follow"


def test_nothing_is_kept_of_a_map_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    belief = made(1)
    for _ in range(6):
        read(belief, rng)
    check(belief)
    monkeypatch.setattr(factor, "_MOST", 0.0)
    monkeypatch.setattr(factor, "_FEWEST", 7)  # so that it is predicted in parts
    check(belief)
    assert belief._data._everywhere._kept.nbytes == 0
    monkeypatch.undo()
    read(belief, rng)
    check(belief)
