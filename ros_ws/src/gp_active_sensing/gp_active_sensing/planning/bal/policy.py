"""⟨α,ε⟩-BAL: anytime nonmyopic Bayes-optimal active learning. [Hoang2014, Algorithm 1]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning.bal.branching import Branching, EqualProbabilityCells, RandomDraws
from gp_active_sensing.planning.bal.covariance_state import (
    DELICATE,
    CovarianceState,
    Deadline,
    DecisionProblem,
)
from gp_active_sensing.planning.bal.state_block import StateBlock
from gp_active_sensing.planning.bal.tree import SEARCHES, Tree
from gp_active_sensing.planning.base import Candidates, PolicyState, candidates, no_plan
from gp_active_sensing.planning.beliefs import MergedCandidates, joined, joint_given_pending
from gp_active_sensing.planning.budget import BudgetConstraint
from gp_active_sensing.planning.entropy import discrete_entropy, noise_entropy, reported_offset
from gp_active_sensing.planning.greedy import expected_entropy
from gp_active_sensing.planning.request import PlanRequest
from gp_active_sensing.types import FloatArray, IntArray, Plan
from gp_active_sensing.util.ties import NAT, by_size, first_best, ties

_ANY = 2**62
"""Number of expansions that a decision without a limit may use."""


@dataclass(frozen=True)
class Bal:
    r"""Policy that chooses the most informative place, looking several readings ahead.

    The value V_n of stage n is the joint entropy of the remaining readings, given the earlier
    readings z_D [Hoang2014, Eq. 6],

    .. math:: V_n(z_D) = \max_x H[Z_x | z_D] + E[V_{n+1}(z_D \cup \{Z_x\}) | z_D].

    The expectation is over S branches for each candidate place. The search ends at the limit of
    the request, or when the bounds on the value differ by at most α. With `cells`, the bounds
    always hold for the value of the tree (docs/theory.md). With `draws` (the published truncated
    sampling, Eq. 8), the bounds hold for the value of Eq. 6, and the sampled value may lie outside
    of them.

    Every sequence of places, together with the drive to the end place, obeys the limits on metres
    and seconds. Readings on the way to a place (`map.reach`) are subtracted from the budget, but
    the value ignores them.

    If the belief has more than `candidates` hyperparameter candidates, similar hyperparameter
    candidates are merged first (`beliefs.joined`).
    """

    unit = "nat"
    bounded = True
    one_quantity: ClassVar[bool] = True
    """True: the policy plans for one quantity only."""
    REMOVED: ClassVar[Mapping[str, str]] = {
        "objective": "is removed; bal plans for entropy; take policy tour for the error of the map",
        "tail": "is removed; take policy tour for routes with the rest of the budget",
        "max_sequences": "is removed; 2000 sequences are enumerated at most",
        "memory": "is removed; a tree takes 1000 MB at most",
    }
    WERE: ClassVar[Mapping[str, Any]] = {"max_sequences": 2000, "memory": 1000.0}
    horizon: int = param(
        4, help="number of future readings that the search considers", unit="readings", low=1
    )
    samples: int = param(
        5,
        help="number of possible readings that the search considers at each candidate place",
        low=1,
    )
    alpha: float = param(
        0.1,
        help="the search ends when the gap between the upper and the lower bound on the value of "
        "the best place is at most this value",
        unit="nat",
        low=0.0,
    )
    discretisation: str = param(
        "cells",
        help="possible readings at a place: cells = intervals of equal probability; draws = "
        "truncated random draws, as in Hoang et al. (2014)",
        choices=("cells", "draws"),
    )
    tau: float | None = param(
        None,
        help="largest distance of a draw from the predictive mean. null = 5 times the largest "
        "predictive standard deviation",
        unit="unit of the readings",
        low=0.0,
    )
    search: str = param(
        "gap",
        help="state that is expanded first: gap = the state that contributes most to the gap of "
        "the decision; published = the state with the largest lower bound; exhaustive = every "
        "state (slow, for reference)",
        choices=tuple(SEARCHES),
    )
    bounds: str = param(
        "tight",
        help="bounds of a state that is not yet expanded: chain = from the chain rule of entropy; "
        "tight = also from the variance of the last reading (cells only); constant = the "
        "entropies of the noise and of the prior (draws only)",
        choices=("tight", "chain", "constant"),
    )
    loosening: float = param(
        0.0,
        help="draws: each bound of the chain rule is moved outwards by this multiple of the "
        "entropy of the belief's weights. With about 2, a search that is stopped early explores "
        "places that distinguish between the candidates of the belief",
        low=0.0,
        high=100.0,
    )
    mass: ClassVar[float] = 0.999
    """Probability mass of the hyperparameter candidates that a decision with `cells` uses."""
    candidates: int = param(
        8,
        help="cells: largest number of candidates of the belief that a plan uses. Candidates with "
        "equal predictions are joined",
        low=1,
    )
    max_sequences: ClassVar[int] = 2000
    """Largest number of visiting sequences that are enumerated for exact bounds."""
    memory: ClassVar[float] = 1000.0
    """Memory that a tree may use before the search ends [MB]."""

    def __post_init__(self) -> None:
        """Reject constant bounds with `cells`, and `loosening` with `cells` or constant bounds."""
        if self.discretisation == "cells" and self.bounds == "constant":
            msg = "bounds: constant is of discretisation: draws; with cells take tight"
            raise ConfigError(msg)
        if self.loosening and (self.discretisation == "cells" or self.bounds == "constant"):
            msg = (
                "loosening: is of discretisation: draws with the chain rule's bounds; with "
                f"{'cells' if self.discretisation == 'cells' else 'bounds: constant'} leave it at 0"
            )
            raise ConfigError(msg)

    def plan(self, request: PlanRequest, state: PolicyState = None) -> tuple[Plan, PolicyState]:
        """Choose the next place; see `Policy.plan`.

        The bounds in the plan refer to the value of the next `Plan.horizon` readings. If the time
        ends before these bounds are known, the policy chooses the place with the largest expected
        entropy. The bounds in the plan then refer to this reading only.
        """
        belief, topology, pending = request.belief, request.topology, request.pending
        limit, clock = request.limit, request.clock
        started = clock()
        key = int(request.rng.integers(2**63))
        options = candidates(request)
        if options.reason:
            return no_plan(options.reason), state
        deadline = None if limit.seconds is None else started + limit.seconds

        def check() -> None:
            if deadline is not None and clock() >= deadline:
                raise Deadline

        # The published draws use the whole belief, except candidates without weight.
        mass = self.mass if self.discretisation == "cells" else 1.0
        order = by_size(belief.weights)
        count = int(np.searchsorted(np.cumsum(belief.weights[order]), mass - 1e-12)) + 1
        kept = np.sort(order[:count])
        noise = belief.noise_variance[kept]
        constraint = BudgetConstraint(topology, request.remaining)
        restricted = constraint.restricts and not constraint.leaves_room(self.horizon)
        problem = DecisionProblem(
            topology,
            options.observed,
            request.unavailable,
            noise,
            noise_entropy(noise),
            self.max_sequences,
            check,
            constraint if restricted else None,
        )
        tree: Tree | None = None

        def room() -> int:
            if deadline is not None and clock() >= deadline:
                return 0
            most = _ANY if limit.expansions is None else limit.expansions
            if tree is None:
                return most
            return 0 if tree.nbytes > 1e6 * self.memory else most - tree.expanded

        try:
            if room() > 0:
                sequence, mean, weights = self._first(request, kept, problem, options)
                tree = Tree(self._values(key, sequence, mean, weights), sequence, mean, weights)
                SEARCHES[self.search](tree, self.alpha, room)
                if not tree.expanded:  # no gap from the start; the candidates still need values
                    tree.expand_root()
        except Deadline:
            pass  # the root keeps its present bounds
        if tree is None or not tree.root.q_lower.size:
            return _myopic(belief, options, pending, clock() - started), state
        offset = reported_offset(noise, tree.sequence.k)
        return _answer(tree, options, self.alpha, offset, clock() - started), state

    def _first(
        self,
        request: PlanRequest,
        kept: IntArray,
        problem: DecisionProblem,
        options: Candidates,
    ) -> tuple[CovarianceState, FloatArray, FloatArray]:
        """Return the root's covariances, means (L, m) and weights (L,). Update `problem.noise`."""
        belief, at, remaining = request.belief, request.at, request.remaining
        horizon = self.horizon
        if remaining.readings is not None:
            horizon = min(horizon, remaining.readings)
        outlook = problem.outlook(at, frozenset(), horizon, remaining)
        if problem.constraint is not None and outlook.longest is not None:
            horizon = min(horizon, outlook.longest)
        locations = np.array(sorted(outlook.places))
        horizon = min(horizon, len(locations))
        first = np.searchsorted(locations, options.locations)
        posterior = joint_given_pending(belief, locations, request.pending, kept)
        weights = belief.weights[kept]
        found = MergedCandidates(
            weights / weights.sum(),
            posterior.mean,
            posterior.covariance,
            problem.noise,
            problem.reference,
        )
        if self.discretisation == "cells":
            found = joined(found, self.candidates)
        problem.noise, problem.reference = found.noise, found.reference
        largest = np.diagonal(found.covariance, axis1=1, axis2=2).max(axis=1)
        problem.delicate = bool((problem.noise < DELICATE * largest).any())
        sequence = CovarianceState(
            problem,
            horizon,
            frozenset(),
            locations,
            first,
            outlook.sequences,
            found.covariance,
            at=at,
            left=remaining,
        )
        return sequence, found.mean, found.weights

    def _values(
        self, key: int, sequence: CovarianceState, mean: FloatArray, weights: FloatArray
    ) -> Branching:
        reference = sequence.problem.reference
        if self.discretisation == "cells":
            return EqualProbabilityCells(self.samples, reference, self.bounds)
        variance = np.diagonal(sequence.covariance, axis1=1, axis2=2)
        noise = sequence.problem.noise[:, None]
        tau = 5.0 * float(np.sqrt((variance + noise).max())) if self.tau is None else self.tau
        centre = float((weights @ mean).mean())
        most = None
        if self.bounds == "constant":
            most = float(sequence.problem.entropy(variance).max())
        return RandomDraws(self.samples, reference, key, tau, centre, self.loosening, most)


def _answer(tree: Tree, options: Candidates, alpha: float, offset: float, seconds: float) -> Plan:
    q_lower, q_upper = tree.root.q_lower[0], tree.root.q_upper[0]
    # Ties go to the largest upper bound, then to the first candidate.
    largest = np.where(ties(q_lower, floor=NAT), q_upper, -np.inf)
    best = int(first_best(largest, floor=NAT))
    return options.valued_plan(
        best,
        q_lower + offset,
        q_upper + offset,
        waypoints=_preview(tree.root, best),
        lower=tree.lower + offset,
        upper=tree.upper + offset,
        expanded=tree.expanded,
        seconds=seconds,
        deadline_hit=tree.gap > alpha,
        horizon=tree.sequence.k,
    )


def _preview(root: StateBlock, best: int) -> tuple[int, ...]:
    """Return the chosen place, and the places that follow if every branch is the middle one."""
    waypoints: list[int] = []
    found: tuple[StateBlock, int] | None = (root, 0)
    while found is not None and len((sequence := found[0].sequence).candidates):
        block, row = found
        choice = int(first_best(block.q_lower[row], floor=NAT)) if waypoints else best
        waypoints.append(int(sequence.locations[sequence.candidates[choice]]))
        found = block.child(row, choice, block.branch_lower.shape[2] // 2)
    return tuple(waypoints)


def _myopic(belief: Belief, options: Candidates, pending: Collection[int], seconds: float) -> Plan:
    """Return a plan that needs no tree; its bounds are ``Σ b H_λ ≤ H[Z_x] ≤ Σ b H_λ + H(b)``."""
    weights = belief.weights
    expected = expected_entropy(belief, weights, options.locations, pending)
    most = float(discrete_entropy(weights))
    best = int(first_best(expected, floor=NAT))
    return options.valued_plan(
        best,
        expected,
        expected + most,
        expanded=0,
        seconds=seconds,
        deadline_hit=True,
        horizon=1,
    )
