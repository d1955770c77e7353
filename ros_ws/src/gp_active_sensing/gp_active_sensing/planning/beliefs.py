"""Posteriors given pending places, and groups of similar hyperparameter candidates."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.belief import Posterior
from gp_active_sensing.types import FloatArray, IntArray
from gp_active_sensing.util.ties import NAT, RELATIVE, by_size, first_best

_PLACES = 48
"""Largest number of places at which two hyperparameter candidates are compared."""
_MASS = 0.99
"""Probability mass of the hyperparameter candidates that `representatives` considers."""


def joint_given_pending(
    belief: Belief, locations: IntArray, pending: Collection[int], which: IntArray | None = None
) -> Posterior:
    """Return the joint posterior at `locations` as if each pending place had one reading.

    The pending values are unknown, so the means stay the same. The covariance does not depend on
    values. `which` (W,) selects hyperparameter candidates; None = all candidates.
    """
    extra = unread(belief, pending)
    if not extra.size:
        return belief.joint(locations, which)
    m = len(locations)
    joint = belief.joint(np.concatenate([locations, extra]), which)
    C = joint.covariance
    noise = belief.noise_variance if which is None else belief.noise_variance[which]
    block = C[:, m:, m:] + noise[:, None, None] * np.eye(len(extra))
    cross = C[:, :m, m:]
    covariance = C[:, :m, :m] - cross @ np.linalg.solve(block, np.swapaxes(cross, 1, 2))
    return Posterior(joint.mean[:, :m], covariance)


def marginals_given_pending(
    belief: Belief, locations: IntArray, pending: Collection[int]
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (L, m) of the field as if each pending place had one reading."""
    if not unread(belief, pending).size:
        return belief.marginals(locations)
    posterior = joint_given_pending(belief, locations, pending)
    variance = np.diagonal(posterior.covariance, axis1=1, axis2=2)
    return posterior.mean, np.maximum(variance, 0.0)


def unread(belief: Belief, pending: Collection[int]) -> IntArray:
    """Return the pending places without a reading, in order and without repetition."""
    return np.array([p for p in dict.fromkeys(pending) if not belief.observed[p]], dtype=np.int64)


class MergedCandidates(NamedTuple):
    """Predictions at m places for L hyperparameter candidates.

    Args:
        weights: (L,) weights of the candidates; they sum to one.
        mean: (L, m) means.
        covariance: (L, m, m) covariance of the noise-free field.
        noise: (L,) variance of the noise.
        reference: (L,) entropy of the noise, subtracted from the entropy of every reading [nat].
    """

    weights: FloatArray
    mean: FloatArray
    covariance: FloatArray
    noise: FloatArray
    reference: FloatArray


def joined(candidates: MergedCandidates, most: int) -> MergedCandidates:
    r"""Return at most `most` hyperparameter candidates, after merging similar candidates.

    The function repeatedly merges the pair of candidates i, j with the least cost

    .. math:: \frac{w_i w_j}{w_i + w_j} \Big( \sum_x \frac{(\mu_{ix} - \mu_{jx})^2}{\bar v_x}
        + \tfrac12 \sum_x (\log v_{ix} - \log v_{jx})^2
        + \frac{1}{m} \sum_{x \ne y} (\rho_{ixy} - \rho_{jxy})^2 \Big)

    with weights w, and with means μ, variances v and correlations ρ of readings [Ward1963]. v̄ is
    the average variance. The cost approximates the divergence between two similar Gaussians. The
    merged candidate has the sum of both weights, and the mean and covariance of the mixture of
    both. `noise` and `reference` are weighted averages.
    """
    weights = candidates.weights
    if len(weights) <= most:
        return candidates
    group = _groups(weights, _features(candidates), most)
    share = np.zeros((group.max() + 1, len(weights)))
    share[group, np.arange(len(weights))] = weights
    total = share.sum(axis=1)
    share /= total[:, None]
    mean = share @ candidates.mean
    covariance = np.tensordot(share, candidates.covariance, axes=1)
    apart = candidates.mean - mean[group]
    for g in range(len(total)):
        mine = (group == g).nonzero()[0]
        covariance[g] += (apart[mine].T * share[g, mine]) @ apart[mine]
    return MergedCandidates(
        total, mean, covariance, share @ candidates.noise, share @ candidates.reference
    )


def representatives(belief: Belief, most: int) -> tuple[IntArray, FloatArray]:
    """Return indices (L',) and weights (L',) of hyperparameter candidates that represent a belief.

    Candidates with similar predictions form at most `most` groups, as in `joined`. The most
    probable candidate of a group gets the weight of the group. The least probable candidates, with
    a total weight of 1 %, are ignored.
    """
    weights = belief.weights
    order = by_size(weights)
    kept = np.sort(order[: int(np.searchsorted(np.cumsum(weights[order]), _MASS - 1e-12)) + 1])
    share = weights[kept] / weights[kept].sum()
    if len(kept) <= most:
        return kept, share
    if most == 1:
        return order[:1], np.ones(1)
    some = np.unique(np.linspace(0, belief.n - 1, min(belief.n, _PLACES)).round().astype(np.int64))
    mean, _ = belief.marginals_under(some, kept)
    covariance, noise = belief.between(some, some, kept), belief.noise_variance[kept]
    group = _groups(share, _features(MergedCandidates(share, mean, covariance, noise, noise)), most)
    total = np.bincount(group, weights=share).astype(np.float64)
    first = [
        int(np.flatnonzero(group == g)[first_best(share[group == g])]) for g in range(len(total))
    ]
    order = np.argsort(kept[first])
    return kept[first][order], total[order]


def _features(candidates: MergedCandidates) -> FloatArray:
    """Return features (L, F) whose squared distances give the costs in `joined`."""
    weights, mean = candidates.weights, candidates.mean
    L, m = mean.shape
    noise = candidates.noise
    variance = np.maximum(candidates.covariance.diagonal(axis1=1, axis2=2), 0.0)
    variance += noise[:, None]
    scale = np.sqrt(weights @ variance)
    # Some evenly chosen places suffice to compare correlations.
    some = np.unique(np.linspace(0, m - 1, min(m, _PLACES)).round().astype(np.int64))
    x, y = (some[i] for i in np.triu_indices(len(some), 1))
    inverse = 1.0 / np.sqrt(variance)
    correlation = candidates.covariance.reshape(L, -1).take(x * m + y, axis=1)
    correlation *= inverse.take(x, axis=1)
    correlation *= inverse.take(y, axis=1) * np.sqrt(2.0 / len(some))
    apart = (mean - weights @ mean) / scale
    return np.concatenate([apart, np.sqrt(0.5) * np.log(variance), correlation], axis=1)


def _groups(weights: FloatArray, features: FloatArray, most: int) -> IntArray:
    L = len(weights)
    weight = weights.copy()
    centred = features - weights @ features
    gram = centred @ centred.T
    square = np.diagonal(gram)
    apart = np.maximum(square[:, None] + square - 2.0 * gram, 0.0)
    # Cost of merging each pair of groups. A group has the index of its first candidate.
    cost = weight[:, None] * weight / (weight[:, None] + weight) * apart
    np.fill_diagonal(cost, np.inf)
    group = np.arange(L)
    for _ in range(L - most):
        least = cost.min(axis=1)
        best = least.min()
        best += max(RELATIVE * best, NAT)  # ties go to the first pair on every machine
        i = int((least <= best).argmax())
        j = int((cost[i] <= best).argmax())
        both = weight[i] + weight[j]
        # Costs of the merged group, from the costs of its two parts [Ward1963].
        new = (weight[i] + weight) * cost[i] + (weight[j] + weight) * cost[j] - weight * cost[i, j]
        new = np.maximum(new / (both + weight), 0.0)
        weight[i] = both
        group[group == j] = i
        cost[i] = cost[:, i] = new
        cost[j] = cost[:, j] = np.inf
    return np.unique(group, return_inverse=True)[1]
