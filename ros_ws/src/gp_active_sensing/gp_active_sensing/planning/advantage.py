"""What any policy can still gain over a design that is frozen now: a bound."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.base import Candidates
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.entropy import discrete_entropy, gaussian_entropy, noise_entropy
from gp_active_sensing.planning.pending import joint_given_pending
from gp_active_sensing.topology.base import Topology
from gp_active_sensing.types import BoolArray, Budget, FloatArray, IntArray
from gp_active_sensing.util.ties import NAT, first_best

__all__ = ["advantage_over_apgd"]

_LARGEST = 2_000_000
"""Numbers in the largest covariance that is made for the bound (16 MB, some 50 ms)."""


def _no_limit() -> None:
    """Let the bound take as long as it takes."""


def advantage_over_apgd(
    belief: Belief,
    topology: Topology,
    at: int | None,
    options: Candidates,
    pending: Collection[int],
    unavailable: Collection[int],
    remaining: Budget,
    *,
    look_ahead: int,
    check: Callable[[], None] = _no_limit,
) -> float:
    r"""Return a bound on what any policy gains over `apgd` with the k readings left [nat].

    .. math:: H(b) + \sum_\lambda b(\lambda) \Big( \max_{|A| \le k} F_\lambda(A)
        - F_\lambda(G) \Big)

    with ``F_λ(A) = H[Z_A | z_D, λ]`` less the entropy of the noise and G the first
    `look_ahead` places that `apgd` visits from here. Proof: a policy's readings have
    ``H[Z_π] ≤ H(b) + Σ b H[Z_π | λ]``, and under a known λ no policy beats the best fixed set,
    since a posterior covariance does not depend on readings. The places of `apgd` are a fixed set
    that contains G; its readings have ``H[Z] ≥ Σ b F_λ(G)``, as conditioning on λ reduces entropy
    and further readings add information of zero or more. Neither the maximum under λ is
    computed nor the moves obeyed in it: F_λ is monotone and submodular, so that for every set W

    .. math:: \max_{|A| \le k} F_\lambda(A) \le F_\lambda(W)
        + \sum_{k \text{ largest}} \big( F_\lambda(W \cup \{x\}) - F_\lambda(W) \big)

    over the places within reach; the least of these over the prefixes W of the greedy choice under
    λ is taken [Minoux1978]. Cutting both walks at `look_ahead` loosens the bound, it
    stays one. O(L m (look_ahead² + k)) for m places, after their joint posterior.

    Args:
        belief: what is known.
        topology: where the probe may go.
        at: where it stands.
        options: what it may do next.
        pending: waypoints of other probes, as if read.
        unavailable: places set aside.
        remaining: the budget; with a number of readings.
        look_ahead: readings for which `apgd` is followed.
        check: raises when the time is over.

    Returns:
        The bound; infinity where it would cost too much.
    """
    k = remaining.readings
    if k is None:
        return float("inf")
    places = np.flatnonzero(topology.reachable(at, options.observed, k, unavailable))
    weights, noise = belief.weights, belief.noise_variance
    if len(weights) * len(places) ** 2 > _LARGEST:
        return float("inf")
    check()
    C = joint_given_pending(belief, places, pending).covariance
    steps = min(look_ahead, k, len(places))
    most = _most(C, noise, k, steps, check)
    apgd = _GreedyWalk(topology, at, options, unavailable, remaining).value(
        places, C, weights, noise, steps, check
    )
    # The bracket is never negative; rounding and a belief that leaves a λ out must not make it so.
    return float(discrete_entropy(weights) + weights @ np.maximum(most - apgd, 0.0))


def _information(variance: FloatArray, noise: FloatArray) -> FloatArray:
    """Return ``½ log(1 + v/σ_n²)`` for latent variances (L, m)."""
    return gaussian_entropy(variance + noise[:, None]) - noise_entropy(noise)[:, None]


def _most(
    C: FloatArray, noise: FloatArray, k: int, steps: int, check: Callable[[], None]
) -> FloatArray:
    """Return the (L,) submodular bounds on k readings among the places of C (L, m, m)."""
    L, m = C.shape[:2]
    own = np.arange(L)
    variance = np.maximum(np.diagonal(C, axis1=1, axis2=2), 0.0)
    downdates = np.zeros((steps, L, m))
    taken = np.zeros((L, m), dtype=bool)
    total = np.zeros(L)
    gain = _information(variance, noise)
    best = _largest(gain, k)
    for j in range(steps):
        check()
        pick = first_best(gain, floor=NAT)
        total += gain[own, pick]
        d = C[own, pick] - np.einsum("jl,jlm->lm", downdates[:j, own, pick], downdates[:j])
        d /= np.sqrt(variance[own, pick] + noise)[:, None]
        downdates[j] = d
        variance = np.maximum(variance - d * d, 0.0)
        taken[own, pick] = True
        gain = np.where(taken, 0.0, _information(variance, noise))
        best = np.minimum(best, total + _largest(gain, k))
    return best


def _largest(gain: FloatArray, k: int) -> FloatArray:
    """Return the sum of the k largest along the last axis."""
    first = max(gain.shape[-1] - k, 0)
    return np.asarray(np.partition(gain, first, axis=-1)[..., first:].sum(axis=-1))


@dataclass(frozen=True)
class _GreedyWalk:
    """The walk of `apgd` from here, with the belief as it is now."""

    topology: Topology
    at: int | None
    options: Candidates
    unavailable: Collection[int]
    remaining: Budget

    def value(
        self,
        places: IntArray,
        C: FloatArray,
        weights: FloatArray,
        noise: FloatArray,
        steps: int,
        check: Callable[[], None],
    ) -> FloatArray:
        """Return the (L,) information under each λ of the first `steps` places it visits."""
        L, m = C.shape[:2]
        variance = np.maximum(np.diagonal(C, axis1=1, axis2=2), 0.0)
        downdates = np.zeros((steps, L, m))
        total = np.zeros(L)
        here, seen, budget = self.at, self.options.observed.copy(), self.remaining
        for j in range(steps):
            check()
            candidates, budgets = self._candidates(here, seen, budget)
            if not len(candidates):
                break
            where = np.searchsorted(places, candidates)
            gain = _information(variance[:, where], noise)
            best = int(first_best(weights @ gain, floor=NAT))
            pick, here, budget = int(where[best]), int(candidates[best]), budgets(best)
            total += gain[:, best]
            d = C[:, pick] - np.einsum("jl,jlm->lm", downdates[:j, :, pick], downdates[:j])
            d /= np.sqrt(variance[:, pick] + noise)[:, None]
            downdates[j] = d
            variance = np.maximum(variance - d * d, 0.0)
            seen[here] = True
        return total

    def _candidates(
        self, here: int | None, seen: BoolArray, budget: Budget
    ) -> tuple[IntArray, Callable[[int], Budget]]:
        """Return what may be next, and what is left of the budget after each."""
        constraint = BudgetConstraint(self.topology, budget)
        if not constraint.restricts:
            return self.topology.candidates(here, seen, self.unavailable), lambda _: budget
        drives = constraint.drives(here, seen, self.unavailable)
        places = np.array([drive.place for drive in drives], dtype=np.int64)
        return places, lambda i: drives[i].left(budget)
