"""Information that a place would have given when a decision was taken."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.beliefs import marginals_given_pending
from gp_active_sensing.planning.entropy import mixture_entropy, noise_entropy

__all__ = ["information"]


def information(
    belief: Belief, places: Sequence[int], pending: Collection[int] = ()
) -> list[float]:
    """Return what one reading of each place tells about the field and its hyper-parameters [nat].

    ``H[Z_x] - Σ_λ b(λ) ½ log(2πe σ_n²(λ))``: the planners' reward for one reading. It is not
    negative and has no unit of the readings in it, so places and stages can be compared and added.

    Args:
        belief: at the decision.
        places: which to look at.
        pending: places that other probes were under way to.
    """
    if not places:
        return []
    mean, variance = marginals_given_pending(belief, np.array(places, dtype=np.int64), pending)
    weights, noise = belief.weights, belief.noise_variance
    entropy = mixture_entropy(weights, mean.T, variance.T + noise)
    told = entropy - float(weights @ noise_entropy(noise))
    return [max(0.0, float(value)) for value in told]
