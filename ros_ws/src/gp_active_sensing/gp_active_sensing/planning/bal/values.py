"""What states are worth: by cells, with bounds that always hold, or by the published draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from gp_active_sensing.planning.bal.bounds import children_chain_rule, initial_bounds
from gp_active_sensing.planning.bal.discretise import (
    Successors,
    by_cells,
    by_draws,
    drawn_reward,
)
from gp_active_sensing.planning.bal.last_stage import last_stage_bounds
from gp_active_sensing.planning.bal.sequences import Leaves
from gp_active_sensing.planning.entropy import mixture_entropy
from gp_active_sensing.types import FloatArray

if TYPE_CHECKING:
    from gp_active_sensing.planning.bal.tree import Block

__all__ = ["Cells", "Draws", "Values"]

_CHUNK = 4_000_000
"""Numbers in the largest temporary array."""


class Values(Protocol):
    """How the states of a block are branched and valued."""

    sound: bool
    """Bounds hold for the tree's own value, so that the tighter of old and new may be kept."""

    def discretise(self, block: Block) -> Successors:
        """Return what may be read at each candidate."""
        ...

    def last(self, block: Block) -> FloatArray:
        """Return the (r, A) value of each candidate when one reading is to come."""
        ...

    def branch_bounds(self, block: Block, found: Successors) -> tuple[FloatArray, FloatArray]:
        """Return bounds (r, A, S) on the states that the branches lead to."""
        ...


class Cells:
    """Cells of equal probability, exact entropies at the last stage.

    Args:
        samples: branches per candidate, S.
        reference: (L,) reference entropies.
        bounds: of last stages with many candidates: chain, tight, pairwise; see `Bal`.
    """

    sound = True

    def __init__(self, samples: int, reference: FloatArray, bounds: str = "tight") -> None:
        self.samples = samples
        self.reference = reference
        self.bounds = bounds

    def discretise(self, block: Block) -> Successors:
        """See `Values`."""
        sequence = block.sequence
        mean = block.mean[:, :, sequence.candidates]
        return by_cells(block.weights, mean, sequence.variance, sequence.entropy, self.samples)

    def last(self, block: Block) -> FloatArray:
        """See `Values`."""
        sequence, weights = block.sequence, block.weights
        mean = block.mean[:, :, sequence.candidates]
        entropy = mixture_entropy(weights[:, None], mean.swapaxes(1, 2), sequence.variance.T)
        return np.asarray(entropy - (weights @ self.reference)[:, None])

    def branch_bounds(self, block: Block, found: Successors) -> tuple[FloatArray, FloatArray]:
        """See `Values`; exact where one reading is to come and candidates are few."""
        sequence = block.sequence
        if sequence.k == 2 and (leaves := sequence.leaves()) is not None:
            values = self._leaf_values(block, found, leaves)
            return values, values
        if sequence.k == 2 and self.bounds != "chain":
            pairwise = self.bounds == "pairwise"
            return last_stage_bounds(block, found, self.reference, pairwise=pairwise)
        return _chain_rule_bounds(block, found)

    def _leaf_values(self, block: Block, found: Successors, leaves: Leaves) -> FloatArray:
        """(r, A, S) values of the last stages after every branch, in one integration."""
        sequence, owner, where = block.sequence, leaves.owner, leaves.where
        out = np.empty(found.probability.shape)
        step = max(1, _CHUNK // (self.samples * len(where) * len(self.reference)))
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            mean = block.mean[part]
            values = found.values[part].swapaxes(1, 2)[:, :, None, :]
            surprise = values - mean[:, None, :, sequence.candidates]
            moved = mean[:, None, :, where] + sequence.gain[:, owner, where] * surprise[..., owner]
            weights = found.weights[part][:, owner].swapaxes(1, 2)  # (r, S, X, L)
            entropy = mixture_entropy(weights, moved.swapaxes(2, 3), leaves.variance.T)
            value = entropy - weights @ self.reference
            out[part] = np.maximum.reduceat(value, leaves.starts, axis=2).swapaxes(1, 2)
        return out


class Draws:
    """Truncated random observations, as published. [Hoang2014, Eq. 8].

    Args:
        samples: branches per candidate, S.
        reference: (L,) reference entropies.
        key: of the random draws; those of a state depend on it and on the state's path alone.
        tau: truncation τ.
        centre: what readings are taken relative to.
        common: candidates share their underlying random numbers.
    """

    sound = False

    def __init__(
        self,
        samples: int,
        reference: FloatArray,
        key: int,
        tau: float,
        centre: float,
        common: bool = False,
    ) -> None:
        self.samples = samples
        self.reference = reference
        self.key = key
        self.tau = tau
        self.centre = centre
        self.common = common

    def discretise(self, block: Block) -> Successors:
        """See `Values`."""
        rows = [by_draws(*self._state(block, r), common=self.common) for r in range(len(block.row))]
        if len(rows) == 1:  # one at a time in the published search: no copies
            [r] = rows
            return Successors(r.values[None], r.probability[None], r.weights[None], r.reward[None])
        return Successors(
            np.stack([r.values for r in rows]),
            np.stack([r.probability for r in rows]),
            np.stack([r.weights for r in rows]),
            np.stack([r.reward for r in rows]),
        )

    def last(self, block: Block) -> FloatArray:
        """See `Values`; as drawn."""
        rows = range(len(block.row))
        return np.stack([drawn_reward(*self._state(block, r), common=self.common) for r in rows])

    def branch_bounds(self, block: Block, found: Successors) -> tuple[FloatArray, FloatArray]:
        """See `Values`; of Eq. 6, which the drawn value may leave."""
        return _chain_rule_bounds(block, found)

    def _state(
        self, block: Block, row: int
    ) -> tuple[
        FloatArray,
        FloatArray,
        FloatArray,
        float,
        int,
        np.random.Generator,
        tuple[float, float],
    ]:
        """Return what `by_draws` takes."""
        sequence, mean, weights = block.sequence, block.mean[row], block.weights[row]
        # τ̂ = max(|μ̌ - τ|, |μ̂ + τ|) is symmetric about zero: readings are centred first.
        low, high = mean.min() - self.centre, mean.max() - self.centre
        tau_hat = max(abs(low - self.tau), abs(high + self.tau))
        return (
            weights,
            mean[:, sequence.candidates],
            sequence.variance,
            float(weights @ self.reference),
            self.samples,
            np.random.default_rng([self.key, *block.path(row)]),
            (self.centre - tau_hat, self.centre + tau_hat),
        )


def _chain_rule_bounds(block: Block, found: Successors) -> tuple[FloatArray, FloatArray]:
    fixed, best = children_chain_rule(block.sequence)
    return initial_bounds(fixed, best, found.weights)
