"""What the guarantee of `sample_size` depends on, from a belief as it is now."""

from __future__ import annotations

import math

import numpy as np

from gp_active_sensing.belief import Belief
from gp_active_sensing.planning.bal.bounds import children_chain_rule, initial_bounds
from gp_active_sensing.planning.bal.covariance_state import CovarianceState
from gp_active_sensing.planning.bal.problem import DecisionProblem
from gp_active_sensing.planning.bal.sample_size import Planning
from gp_active_sensing.planning.entropy import noise_entropy
from gp_active_sensing.topology.base import Topology

__all__ = ["measured_range", "planning_of"]


def planning_of(belief: Belief, horizon: int, **settings: float | None) -> Planning:
    """Return what the guarantee depends on for a belief as it is now.

    Args:
        belief: gives |X|, L and σ_o/σ_n.
        horizon: stages N.
        settings: `kappa`, `tau` or `summand` of `Planning`.
    """
    _, variance = belief.marginals()
    noise = belief.noise_variance
    ratio = math.sqrt(float((variance + noise[:, None]).max() / noise.min()))
    return Planning(horizon, belief.n, len(noise), ratio, **settings)  # type: ignore[arg-type]


def measured_range(
    belief: Belief,
    topology: Topology,
    at: int | None,
    horizon: int,
    *,
    rng: np.random.Generator,
    draws: int = 200,
    tau: float | None = None,
    max_sequences: int = 2000,
) -> float:
    """Return the range T of ``-log p(z_x | z_D) + V(z_D ∪ {z_x})`` over simulated readings [nat].

    τ-truncated readings are drawn at every candidate of the first stage, the one with the most
    to come. V is put into its chain-rule bounds, of which the range takes the outer ones, so
    what is found is not too small for these draws; rarer readings would give more.

    Args:
        belief: what is known; not changed.
        topology: where the probe may go.
        at: where it stands.
        horizon: stages N, clipped to the places within reach.
        rng: source of the readings.
        draws: readings at each candidate.
        tau: truncation, in the readings' unit; None = 5 predictive deviations, as in planning.
        max_sequences: visiting sequences enumerated for exact bounds.

    Raises:
        ValueError: there is no place to go.
    """
    observed = belief.observed.copy()
    noise = belief.noise_variance
    problem = DecisionProblem(
        topology, observed, (), noise, noise_entropy(noise), max_sequences, lambda: None
    )
    candidates = problem.candidates(at, ())
    if not len(candidates):
        msg = "no place is left to be read, so there is no summand to measure"
        raise ValueError(msg)
    outlook = problem.outlook(at, frozenset(), horizon)
    locations = np.array(sorted(outlook.places))
    stages = min(horizon, len(locations))
    posterior = belief.joint(locations)
    where = np.searchsorted(locations, candidates)
    sequence = CovarianceState(
        problem, stages, frozenset(), locations, where, outlook.sequences, posterior.covariance
    )
    diagonal = np.diagonal(posterior.covariance, axis1=1, axis2=2)[:, where]
    variance = (np.maximum(diagonal, 0.0) + noise[:, None]).T[:, None, :]
    weights = belief.weights
    centre = float((weights @ posterior.mean).mean())
    mean = posterior.mean[:, where].T[:, None, :] - centre
    truncation = 5.0 * math.sqrt(variance.max()) if tau is None else tau
    limit = max(abs(float(mean.min()) - truncation), abs(float(mean.max()) + truncation))
    A = len(candidates)
    component = rng.choice(len(weights), size=(A, draws), p=weights)
    row = np.arange(A)[:, None]
    z = mean[row, 0, component]
    z = z + np.sqrt(variance[row, 0, component]) * rng.standard_normal((A, draws))
    z = np.clip(z, -limit, limit)[:, :, None]
    with np.errstate(divide="ignore"):
        log_joint = np.log(weights) - 0.5 * (
            (z - mean) ** 2 / variance + np.log(2.0 * math.pi * variance)
        )
    surprise = -np.logaddexp.reduce(log_joint, axis=2)
    if stages == 1:
        return float(np.ptp(surprise))
    after = np.exp(log_joint + surprise[:, :, None])
    after /= after.sum(axis=2, keepdims=True)
    sequence.prepare()
    lower, upper = initial_bounds(*children_chain_rule(sequence), after)
    return float((surprise + upper).max() - (surprise + lower).min())
