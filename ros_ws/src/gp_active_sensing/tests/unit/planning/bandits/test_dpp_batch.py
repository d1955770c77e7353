"""UCB-PE, EST-PE and DPP-SAMPLE: the region, the kernel, and the choice step by step."""

from __future__ import annotations

import numpy as np
import pytest

from gp_active_sensing.planning import dpp
from gp_active_sensing.planning.bandits.dpp_batch import RegionKernel, region_of, relevance_region
from tests.cases import for_each
from tests.requesting import asked
from tests.unit.planning.bandits.worlds import batch, believe, scattered, start_of


@pytest.mark.seeds(0.5)
def test_the_region_contains_what_may_be_the_maximum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=50), rng.uniform(0.01, 1.0, size=50)
    for width in (0.0, 0.5, 3.0):
        inside = relevance_region(mean, std, width)
        lower = mean - width * std
        assert inside[np.argmax(lower)]
        assert inside[np.argmax(mean)]
        assert inside[np.argmax(mean + width * std)]
        # What is left out is below the best lower bound by any bound that holds.
        assert (mean + width * std)[~inside].max(initial=-np.inf) < lower.max()


def test_a_region_smaller_than_the_batch_is_widened_by_upper_bounds() -> None:
    mean, std = np.array([10.0, 0.0, 2.0, 1.0, 2.0]), np.full(5, 0.1)
    assert relevance_region(mean, std, 1.0).tolist() == [True, False, False, False, False]
    assert region_of(mean, std, 1.0, size=1).tolist() == [0]
    assert region_of(mean, std, 1.0, size=2).tolist() == [0, 2]
    assert region_of(mean, std, 1.0, size=3, without=[0]).tolist() == [2, 3, 4]
    assert region_of(mean, std, 1.0, size=4, without=[2]).tolist() == [0, 1, 3, 4]
    # A member with a lower bound above all of them leaves nothing but what is made up.
    assert region_of(mean, std, 1.0, size=1, floor=50.0).tolist() == [0]


def direct_kernel(belief, places, members):  # type: ignore[no-untyped-def]
    """I + σ⁻² C of the mixture, and its Schur complement."""
    everything = np.concatenate([np.array(members, dtype=int), places])
    joint, b = belief.joint(everything), belief.weights
    centre = b @ joint.mean
    C = np.einsum("l,lij->ij", b, joint.covariance)
    C += np.einsum("l,li,lj->ij", b, joint.mean - centre, joint.mean - centre)
    L = np.eye(len(everything)) + C / (b @ belief.noise_variance)
    k = len(members)
    return L[k:, k:] - L[k:, :k] @ np.linalg.inv(L[:k, :k]) @ L[:k, k:]


OPTIONS = {
    "one": {},
    "several": {"length_scales": (1.0, 3.0), "noise_std": (0.1, 0.4)},
    "mean known": {"mean_std": 0.0, "length_scales": (1.0, 3.0)},
    "linear mean": {"mean": "linear"},
    "scale not known": {"signal_std": None, "noise_std": None, "length_scales": (1.0, 3.0)},
    "a share of nothing": {"length_scales": (2.0, 3.0), "weights": (1.0, 0.0)},
    "logarithm": {"transform": "log"},
}


@for_each("options", OPTIONS.values())
@for_each("members", [(), (7,), (7, 30, 7)])
def test_the_kernel_is_formed_by_entries_as_it_is_directly(options, members) -> None:  # type: ignore[no-untyped-def]
    topology = scattered()
    readings = 8
    if options.get("transform") == "log":
        belief = believe(topology, 0, **options)
        for place in range(8):
            belief.observe(place, float(np.exp(np.sin(place))))
    else:
        belief = believe(topology, readings, **options)
    places = np.arange(3, 25)
    kernel = RegionKernel(belief, places, members)
    expected = direct_kernel(belief, places, members)
    every, some = np.arange(22), np.array([9, 2, 2])
    np.testing.assert_allclose(kernel.entries(every, every), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(kernel.diagonal, np.diagonal(expected), rtol=1e-7)
    np.testing.assert_allclose(kernel.entries(every, some)[:, 0], expected[:, 9], atol=1e-7)
    backwards = kernel.entries(every[::-1], some)
    np.testing.assert_allclose(backwards[:, 1], expected[::-1, 2], atol=1e-7)
    np.testing.assert_allclose(kernel.entries(some, every)[0], expected[9], atol=1e-7)


def test_the_chain_stands_in_for_the_exact_draw_beyond_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topology = scattered(30)
    belief = believe(topology, 3)
    start = start_of(batch("ucb_dpp_sample"), belief, topology)
    mean, std = start.view.everywhere
    # The first member is in the region, and not drawn again.
    widths = [start.widths(stage, np.arange(30), std) for stage in (1, 2)]
    floor = float((mean - widths[0] * std).max())
    size = int(relevance_region(mean, std, widths[1], floor).sum()) - 1
    draws = []
    for limit in (0, size - 1, size):
        monkeypatch.setattr(dpp, "EXACT", limit)
        draws.append(batch("ucb_dpp_sample").choose(start, 5, np.random.default_rng(1)))
    assert draws[0] == draws[1] != draws[2]


def test_a_field_without_noise_has_sets_with_a_determinant(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = scattered(30)
    belief = believe(topology, 3, noise_std=(1e-9,), length_scales=(100.0,))
    for limit in (0, 500):
        monkeypatch.setattr(dpp, "EXACT", limit)
        policy = batch("ucb_dpp_sample")
        start = start_of(policy, belief, topology)
        assert len(set(policy.choose(start, 6, np.random.default_rng(0)))) == 6


def test_a_round_begins_with_each_lead_where_probes_wait_one_at_a_time() -> None:
    topology = scattered()
    belief = believe(topology)
    policy = batch("ucb_dpp_max")
    state, pending, rounds = None, [], []
    for _ in range(9):
        plan, state = policy.plan(asked(belief, topology, 0, pending=pending), state)
        rounds.append(state["round"])
        pending.append(plan.waypoint)
        if len(pending) == 3:  # the first of them arrives
            belief.observe(pending.pop(0), 0.0)
    # The lead arrives after decision 3, and every third decision from there on is one.
    assert rounds == [1, 1, 1, 2, 2, 2, 3, 3, 3]
