"""Build the candidates of a mission's belief from a kernel model.

The candidates have the kernels that are most probable in the model's belief q*(k). Length-scales
are multiplied by log-spaced factors f, which cover two standard deviations of the posterior q(θ) in
both directions. The largest factor is at least 2 and at most 8. The prior weight of a candidate is
``q*(k_i)`` times the log-normal mass of f. All other parameters in θ, including periods, have their
posterior mean [Teng2020, Sec. 4].

There are two candidates for each pair of kernel and factor. One assigns a small fraction of the
noise to an independent component of each place, the other a large fraction.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.config import BeliefConfig
from gp_active_sensing.belief.place_covariance import PlaceCovariance
from gp_active_sensing.belief.prior import (
    TRANSFORMS,
    HyperParameters,
    LocationCovariance,
    PriorMean,
)
from gp_active_sensing.belief.run_copy import model_path, with_mark
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.kernel_model.model import KernelFit, KernelModel, Scaling
from gp_active_sensing.kernel_model.model_file import read_model
from gp_active_sensing.kernels.base import BaseKernel
from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.types import FloatArray, IntArray

logger = logging.getLogger(__name__)

KERNELS = 4
"""Largest number of kernels of a model; the most probable kernels are used."""
SCALES = 5
"""Number of factors on the length-scales of each kernel; it is odd, because one factor is 1."""
_TABLE = 16_000_000
"""Largest number of entries in a table of all covariances (128 MB)."""


@dataclass(frozen=True, eq=False)
class KernelCandidates:
    """Candidates with the same kernel and different length-scales.

    Candidates that differ only in noise and independent component have equal θ.

    Args:
        composite: the kernel.
        thetas: (F, P) parameters θ in normalised units; only length-scales differ.
        hyperparameters: (F,) candidates in the units of the map and the readings.
        weights: (F,) prior weights.
    """

    composite: Composite
    thetas: FloatArray
    hyperparameters: tuple[HyperParameters, ...]
    weights: FloatArray


class KernelCovariance(LocationCovariance):
    """Covariance ``s² k_i(z, z'; θ_i)`` over places with inputs z, under each candidate i.

    The candidates are ordered by kernel. The variance depends on the place if a kernel contains the
    linear kernel LIN. The independent component of each place is not included; see
    `PlaceCovariance`.

    Args:
        groups: the candidates of each kernel.
        inputs: (n, d) inputs of the places in normalised units.
        output_scale: s, one normalised unit of the field in the unit of the readings.

    Raises:
        ValueError: there is no candidate, or inputs are not finite or do not fit the kernels.
    """

    def __init__(
        self, groups: Sequence[KernelCandidates], inputs: FloatArray, output_scale: float
    ) -> None:
        Z = np.array(inputs, dtype=np.float64)
        if not groups or not all(group.hyperparameters for group in groups):
            msg = "expected at least one candidate, got none"
            raise ValueError(msg)
        widths = {group.composite.dimensions for group in groups}
        if Z.ndim != 2 or widths != {Z.shape[1]} or not np.isfinite(Z).all():
            msg = f"expected finite inputs (n, {widths.pop()}), got shape {Z.shape}"
            raise ValueError(msg)
        self.n = len(Z)
        self._kernels: list[_Prepared] = []
        self.hyperparameters = tuple(h for group in groups for h in group.hyperparameters)
        # Candidates with equal θ share a covariance.
        which: list[int] = []
        distinct = 0
        for group in groups:
            thetas, inverse = np.unique(group.thetas, axis=0, return_inverse=True)
            self._kernels.append(_Prepared(group.composite, thetas, Z, output_scale**2))
            which += (distinct + inverse.reshape(-1)).tolist()
            distinct += len(thetas)
        self._which: IntArray = np.array(which)
        self._variance: FloatArray = np.concatenate([part.variance() for part in self._kernels])
        self._table: FloatArray | None = None
        if distinct * self.n**2 <= _TABLE:
            everywhere = np.arange(self.n)
            self._table = self._computed(everywhere, everywhere)

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L, r, c) prior covariance of `rows` and `columns` under each candidate λ."""
        if self._table is None:
            return np.asarray(self._computed(rows, columns)[self._which])
        return np.asarray(
            self._table[self._which[:, None, None], np.asarray(rows)[:, None], columns]
        )

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L, m) prior variance at `locations` under each candidate λ."""
        return np.asarray(self._variance[:, locations][self._which])

    def only(self, which: Sequence[int]) -> KernelCovariance:
        """Return this covariance restricted to the hyper-parameter candidates `which`."""
        other = copy(self)
        other._which = self._which[list(which)]
        other.hyperparameters = tuple(self.hyperparameters[i] for i in which)
        return other

    def _computed(self, rows: IntArray, columns: IntArray) -> FloatArray:
        found = np.concatenate([part.between(rows, columns) for part in self._kernels])
        # Rounding of squared distances must not change the diagonal.
        at, to = np.nonzero(np.asarray(rows)[:, None] == np.asarray(columns)[None, :])
        found[:, at, to] = self._variance[:, np.asarray(rows)[at]]
        return found


class _Prepared:
    """Covariance of a composite kernel under F different θ; inputs are warped once in advance."""

    def __init__(
        self, composite: Composite, thetas: FloatArray, Z: FloatArray, scale: float
    ) -> None:
        self._composite, self._theta = composite, thetas[0]
        self._scale = scale
        self._leaves: list[tuple[BaseKernel, FloatArray, float]] = []
        for k, leaf in enumerate(self._composite.leaves):
            lengths, periods = (
                np.exp(thetas[:, None, self._composite.where(kind, k)])
                for kind in ("length_scale", "period")
            )
            warped = np.asarray(leaf.warped(Z, lengths, periods))
            self._leaves.append((leaf, warped, self._composite.alpha(self._theta, k)))

    def variance(self) -> FloatArray:
        values = [leaf.variance(places) for leaf, places, _ in self._leaves]
        return self._scale * self._composite.joined(self._theta, values)

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        values = [
            leaf.between(places[:, rows], places[:, columns], alpha=alpha)
            for leaf, places, alpha in self._leaves
        ]
        return self._scale * self._composite.joined(self._theta, values)


_LEAST, _MOST = math.log(2.0), math.log(8.0)
"""Logarithms of two limits: the largest factor on length-scales lies between 2 and 8."""
OWN_SHARES = (0.2, 0.8)
"""Fractions of the learned noise variance that candidates assign to the independent component of
each place; all are equally probable. If each place is read once, the readings only determine the
sum of this component and the noise."""
_SMALLEST = 1e-9
"""Lower limit of the standard deviation of the field, in normalised units."""


def learned_belief(
    config: BeliefConfig,
    features: FloatArray,
    names: Sequence[str] | None,
    run_dir: Path | None = None,
) -> Belief:
    """Return the belief over places with `features` (n, p) from the model file of `config`.

    A copy of the model in `run_dir` has precedence. Other arguments are as in `belief_of`.

    Raises:
        ConfigError: the model does not exist, or has other features or another transform.
    """
    config = with_mark(config, run_dir)
    path = model_path(config, run_dir)
    try:
        model = read_model(path)
    except ConfigError as error:
        raise ConfigError([f"belief.model: {problem}" for problem in error.problems]) from error
    return belief_of(model, config, features, names, source=str(path))


def belief_of(
    model: KernelModel,
    config: BeliefConfig,
    features: FloatArray,
    names: Sequence[str] | None = None,
    *,
    source: str = "the model",
) -> Belief:
    """Return the belief over places with `features` (n, p) from a kernel model.

    Args:
        model: belief over kernels.
        config: transform, drift and `mean_std` of the belief.
        features: (n, p) features of the places.
        names: names of the features; None = names of the model's inputs.
        source: name of the model in messages.

    Raises:
        ConfigError: features or transform differ from the model's, or features are not finite.
    """
    learned_of = str(model.settings.get("transform", "identity"))
    if learned_of != config.given_transform:
        msg = (
            f"belief.transform: is {config.transform}, and {source} was learned of values with "
            f"transform {learned_of}; give `transform: {learned_of}`"
        )
        raise ConfigError(msg)
    model = model.ordered()
    columns = _columns(model, names, features.shape[1], source)
    inputs = model.scaling.inputs(features[:, columns])
    if not np.isfinite(inputs).all():
        bad = int(np.flatnonzero(~np.isfinite(inputs).all(axis=1))[0])
        msg = f"belief.model: features must be finite, place {bad} has others"
        raise ConfigError(msg)
    _warn_of_range(model, inputs, source)
    extent = float(np.ptp(features, axis=0).max()) or 1.0
    groups = candidates_of(model, inputs, extent=extent)
    scale = model.scaling.output_scale
    logger.info(
        "belief over kernels of %s: %s",
        source,
        ", ".join(f"{g.composite.name} {g.weights.sum():.2f}" for g in groups),
    )
    covariance = PlaceCovariance(KernelCovariance(groups, inputs, scale))
    return Belief(
        covariance,
        PriorMean.constant(covariance.n, model.scaling.output_shift, _mean_std(config, model)),
        np.concatenate([group.weights for group in groups]),
        TRANSFORMS[config.given_transform],
        drift=config.drift,
    )


def candidates_of(
    model: KernelModel, inputs: FloatArray, *, extent: float
) -> tuple[KernelCandidates, ...]:
    """Return the candidates Λ of a model, kernel by kernel, with their prior weights.

    Each factor on the length-scales is combined with each value of `OWN_SHARES`.

    Args:
        model: belief over kernels.
        inputs: (n, d) inputs of the places in normalised units.
        extent: extent of the map in feature units, used for kernels without a length-scale.
    """
    model = model.ordered()
    share = model.belief.probabilities[:KERNELS]
    share = share / share.sum()
    return tuple(
        _of_kernel(fit, float(weight), inputs, model.scaling, extent)
        for fit, weight in zip(model.fits[:KERNELS], share, strict=True)
    )


def _of_kernel(
    fit: KernelFit, weight: float, inputs: FloatArray, scaling: Scaling, extent: float
) -> KernelCandidates:
    kernel = fit.composite
    logs, mass = _factors(fit)
    thetas = np.array([kernel.stretched(fit.theta_mean, math.exp(log)) for log in logs])
    noise = fit.noise_floor**2 + math.exp(2.0 * float(fit.theta_mean[kernel.where("noise")[0]]))
    signal = max(float(np.sqrt(kernel.variance(fit.theta_mean, inputs).mean())), _SMALLEST)
    found = tuple(
        HyperParameters(
            (kernel.typical_length(theta, scaling.input_scale) or extent,),
            signal * scaling.output_scale,
            math.sqrt((1.0 - own) * noise) * scaling.output_scale,
            kernel.name,
            math.sqrt(own * noise) * scaling.output_scale,
        )
        for theta in thetas
        for own in OWN_SHARES
    )
    each = len(OWN_SHARES)
    prior = np.repeat(weight * mass / each, each)
    return KernelCandidates(kernel, np.repeat(thetas, each, axis=0), found, prior)


def _factors(fit: KernelFit) -> tuple[FloatArray, FloatArray]:
    """Return the (F,) log factors on a kernel's length-scales, and the factors' prior masses."""
    which = fit.composite.lengths_of_variation
    if not which.size:
        return np.zeros(1), np.ones(1)
    spread = float(np.sqrt(np.mean(fit.theta_std[which] ** 2)))
    reach = min(max(2.0 * spread, _LEAST), _MOST)
    logs = np.linspace(-reach, reach, SCALES)
    mass = np.exp(-0.5 * (2.0 * logs / reach) ** 2)
    return logs, mass / mass.sum()


def _mean_std(config: BeliefConfig, model: KernelModel) -> float:
    """Return the standard deviation of the field's mean about the mean of the model.

    By default, it is the standard deviation of the field, because the mean may differ on another
    day. If the outputs of the model were not centred, the mean is known to be 0.
    """
    if config.mean_std is not None:
        return config.mean_std
    vbks = model.settings.get("vbks")
    centred = not isinstance(vbks, dict) or bool(vbks.get("centre", True))
    return model.scaling.output_scale if centred else 0.0


def _columns(model: KernelModel, names: Sequence[str] | None, width: int, source: str) -> list[int]:
    given = list(model.input_names if names is None else names)
    if len(given) == width and sorted(given) == sorted(model.input_names):
        return [given.index(name) for name in model.input_names]
    found = ", ".join(given) if len(given) == width else f"{width}"
    msg = (
        f"belief.model: {source} was learned with the inputs {', '.join(model.input_names)}, and "
        f"the map's features are {found}; learn it with the same, or set map.features to those of "
        "the model"
    )
    raise ConfigError(msg)


def _warn_of_range(model: KernelModel, inputs: FloatArray, source: str) -> None:
    known = np.concatenate([fit.inducing for fit in model.fits[:KERNELS]])
    low, high = known.min(axis=0), known.max(axis=0)
    margin = np.maximum(high - low, 1.0)
    outside = ((inputs < low - margin) | (inputs > high + margin)).any(axis=1)
    if outside.mean() > 0.5:
        logger.warning(
            "belief.model: most places of the map are far from the inputs that %s was learned "
            "from; is it of this map?",
            source,
        )
