"""Build a belief from its configuration."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gp_active_sensing.belief.attributes import Attributes, attributes_of
from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.config import (
    EMPIRICAL,
    FLAT,
    LONG,
    NONE_WEIGHT,
    VAGUE,
    BeliefConfig,
    with_attribute_parts,
)
from gp_active_sensing.belief.drift import DriftConfig
from gp_active_sensing.belief.grid import (
    CandidateGrid,
    KernelGrid,
    LengthScaleGrid,
    axis_ratios,
    default_grid,
    grid_between,
)
from gp_active_sensing.belief.place_covariance import NoNeighbours, PlaceCovariance, with_components
from gp_active_sensing.belief.prior import (
    TRANSFORMS,
    CovarianceFamily,
    FeatureCovariance,
    HyperParameters,
    LocationCovariance,
    PriorMean,
    joined,
)
from gp_active_sensing.errors import ConfigError, ResourceError
from gp_active_sensing.kernels import NONE, build_graph_kernel, build_kernel, graph_kernels
from gp_active_sensing.topology import Topology
from gp_active_sensing.topology.segments import Links
from gp_active_sensing.types import FloatArray
from gp_active_sensing.util.resources import find_resource

if TYPE_CHECKING:
    from gp_active_sensing.belief.graph_covariance import Spectrum

Suggested: TypeAlias = Callable[[int, Sequence[float]], tuple[LengthScaleGrid, ...]]
"""Function that suggests length-scales. Its arguments are the number of length-scales and the
candidate ratios of axes. It returns one grid for each ratio."""

logger = logging.getLogger(__name__)

POINTS, SCALES = 6, 4
"""Total number of length-scales that are derived from the map and divided among the kernels, and
smallest number for each kernel."""
_ODD = 3.0
"""A warning is logged if all configured length-scales are far outside of the range that fits the
map: more than this factor above or below it."""


def belief_on(
    config: BeliefConfig,
    topology: Topology,
    drift: DriftConfig | None = None,
    *,
    run_dir: Path | None = None,
    quiet: bool = False,
) -> Belief:
    """Return the belief described by `config` over the places of a map.

    Args:
        config: prior knowledge.
        topology: the map.
        drift: drift that the policy requires; None = drift of `config`.
        run_dir: directory of a run with a copy of its model; None = no copy.
        quiet: True = do not log the length-scales that are derived from the map.

    Raises:
        ConfigError: a setting does not fit the map, or the policy's drift differs from `config`.
        MapError: a place lacks a column of `mean_features`.
    """
    if drift is not None:
        config = _with_drift(config, drift)
    if config.model is not None:
        from gp_active_sensing.belief.from_kernel_model import learned_belief

        learned = learned_belief(config, topology.features, topology.feature_names, run_dir)
        learned.place_at(topology.points, topology.feature_names)
        return learned
    trend: FloatArray | None = None
    if config.mean == "linear":
        try:
            trend = topology.columns(config.mean_features)[0]
        except ConfigError as error:
            raise ConfigError([f"belief.mean_{problem}" for problem in error.problems]) from error
    config = config.on(roads=topology.roads)
    # Links of a large map take a second to compute: compute them only if needed.
    graph = any(name in graph_kernels for name in config.kernel_names)
    asked = graph or config.length_scales is None
    links = topology.links if asked else None
    belief = build_belief(
        config,
        topology.features,
        topology.feature_names,
        links=links,
        trend=trend,
        places=topology.names,
        attributes=_attributes(config, topology),
        quiet=quiet,
    )
    belief.place_at(topology.points, topology.feature_names)
    return belief


def _attributes(config: BeliefConfig, topology: Topology) -> Attributes | None:
    if config.attributes is None:
        own = config.length_scales is not None or config.mean == "linear"
        return None if own or config.kernel == EMPIRICAL else attributes_of(topology)
    if not config.attributes:
        return None
    try:
        return attributes_of(topology).only(config.attributes)
    except ConfigError as error:
        raise ConfigError([f"belief.{problem}" for problem in error.problems]) from error


def _with_drift(config: BeliefConfig, drift: DriftConfig) -> BeliefConfig:
    if config.drift.changing and config.drift != drift:
        msg = (
            f"belief.drift: is kind {config.drift.kind}, and the policy brings its own, kind "
            f"{drift.kind}; leave belief.drift out, or take gp_ucb, which works under any"
        )
        raise ConfigError(msg)
    return replace(config, drift=drift)


def build_belief(
    config: BeliefConfig,
    features: FloatArray,
    names: Sequence[str] | None = None,
    *,
    links: Links | None = None,
    trend: FloatArray | None = None,
    places: Sequence[str] | None = None,
    attributes: Attributes | None = None,
    quiet: bool = False,
) -> Belief:
    """Return the belief described by `config` over locations with `features` (n, p).

    Args:
        config: prior knowledge.
        features: (n, p) inputs of the covariance.
        names: (p,) names of the features, used to derive length-scales; None = x, y and z.
        links: links between places, for a graph kernel.
        trend: (n, q) columns of a linear mean; None = the features.
        places: (n,) names of the places, for a history of readings.
        attributes: attributes on which the mean may depend linearly; None = no attributes.
        quiet: True = do not log the length-scales that are derived from the map.

    Raises:
        ConfigError: features are not finite, a graph kernel has no links, or length-scales, history
            or model do not fit the map.
    """
    features = np.asarray(features, dtype=np.float64)
    if config.model is not None:
        from gp_active_sensing.belief.from_kernel_model import learned_belief

        return learned_belief(config, features, names)
    if config.kernel == EMPIRICAL:
        return _of_history(config, places)
    config = config.on(roads=False)
    kernels = config.kernel_names
    columns = None if attributes is None else attributes.weighted()
    all_parts = [config.parts(name) for name in kernels]
    if columns is not None and columns.shape[1]:
        all_parts = [with_attribute_parts(parts) for parts in all_parts]
    try:
        made = [covariance_family(name, features, names, links, columns) for name in kernels]
        candidates: CandidateGrid | None = None
        weights: FloatArray | None = None
        if config.length_scales is None:
            count = max(SCALES, POINTS // max(1, sum(name != NONE for name in kernels)))
            ratios = axis_ratios(features, names) if names and features.ndim == 2 else ()
            roads = any(name in graph_kernels for name in kernels)
            plane = features.ndim == 2 and features.shape[1] <= 2 and not roads
            plane = plane and set(names or ()) <= {"x", "y"}
            grids: list[KernelGrid] = []
            for kernel, (family, suggested), parts in zip(kernels, made, all_parts, strict=True):
                pairs = _pairs(config, kernel, suggested(count, ratios), parts)
                name = kernel if len(kernels) > 1 else ""
                share = (NONE_WEIGHT if kernel == NONE else 1.0) / len(pairs)
                # A kernel has two grids if the amplitude of the field is unknown.
                tilts = plane and len(pairs) > 1
                grids += [KernelGrid(s, p, family, name, share, p, tilts) for s, p in pairs]
            candidates = CandidateGrid(tuple(grids), coordinates=features if plane else None)
            covariance, weights = candidates.build()
            if not quiet:
                _log_scales(candidates)
        else:
            each = zip(kernels, made, all_parts, strict=True)
            covariance = joined(
                [family(config.candidates(name, parts)) for name, (family, _), parts in each]
            )
            _warn_of_scales(config.length_scales, made[0][1](3, ())[0])
    except ValueError as error:
        msg = f"belief: {error}"
        raise ConfigError(msg) from error
    std = config.mean_std
    if std is None:
        std = VAGUE * max(parts.signal_std for each in all_parts for parts in each)
        if not config.scale_known:
            std = FLAT
    if config.mean == "linear":
        mean = PriorMean.linear(features if trend is None else trend, config.mean_value, std)
    else:
        mean = PriorMean.constant(covariance.n, config.mean_value, std)
    return Belief(
        covariance,
        mean,
        weights,
        None if config.transform is None else TRANSFORMS[config.transform],
        scale_known=config.scale_known,
        noise_known=config.noise_std is not None,
        grid=candidates,
        drift=config.drift,
    )


def _pairs(
    config: BeliefConfig,
    kernel: str,
    grids: Sequence[LengthScaleGrid],
    parts: tuple[HyperParameters, ...],
) -> list[tuple[LengthScaleGrid, tuple[HyperParameters, ...]]]:
    """Return the length-scales and the variance components of each grid of a kernel.

    If the amplitude is unknown, a second grid has a long-range component. There is no second grid
    with drift, or with several candidate ratios of axes.
    """
    known = kernel == NONE or config.signal_std is not None or config.drift.changing
    if known or len(grids) > 1:
        return [(scales, parts) for scales in grids]
    long = tuple(replace(part, long_std=math.sqrt(LONG) * part.signal_std) for part in parts)
    return [(grids[0], parts), (grids[0], long)]


def _of_history(config: BeliefConfig, places: Sequence[str] | None) -> Belief:
    from gp_active_sensing.belief.empirical import (
        MOST,
        EmpiricalCovariance,
        empirical,
        read_history,
    )

    if places is None or config.history is None:
        msg = "belief.kernel: empirical needs the names of the map's places; see belief_on"
        raise ConfigError(msg)
    if len(places) > MOST:
        msg = (
            f"belief.kernel: empirical keeps a matrix of all places, for at most {MOST}; the map "
            f"has {len(places)}; take another kernel"
        )
        raise ConfigError(msg)
    transform = TRANSFORMS[config.given_transform]
    try:
        path = find_resource("maps", config.history)
        mean, covariance = empirical(read_history(path, places, transform), places)
    except (ConfigError, ResourceError) as error:
        msg = f"belief.history: {error}"
        raise ConfigError(msg) from error
    typical = float(np.sqrt(covariance.diagonal().mean()))
    prior: LocationCovariance = EmpiricalCovariance(covariance, config.parts(EMPIRICAL, typical))
    if any(config.place_std or ()):
        prior = PlaceCovariance(prior)
    std = np.array([config.mean_std]) if config.mean_std else np.zeros(0)
    basis = np.ones((len(places), std.size))
    return Belief(prior, PriorMean(mean, basis, std), None, transform, drift=config.drift)


def _log_scales(candidates: CandidateGrid) -> None:
    listed: dict[str, list[str]] = {}
    for kernel in candidates.kernels:
        if kernel.kernel == NONE:
            continue
        scales = ", ".join(f"{point:.3g}" for point in kernel.scales.points)
        if kernel.scales.shape:
            scales += f" times {', '.join(f'{factor:.3g}' for factor in kernel.scales.shape)}"
        listed.setdefault(scales, []).append(kernel.kernel)
    for scales, names in listed.items():
        of = f" of {', '.join(names)}" if len(listed) > 1 else ""
        logger.info("length-scales%s from the map: %s", of, scales)


def covariance_family(
    name: str,
    features: FloatArray,
    names: Sequence[str] | None,
    links: Links | None,
    attributes: FloatArray | None = None,
) -> tuple[CovarianceFamily, Suggested]:
    """Return a function that builds a covariance, and a function that suggests length-scales.

    The second function returns one grid for each candidate ratio of axes; without ratios, it
    returns one grid. It raises ValueError for features that are not finite.

    Args:
        name: name of the kernel.
        features: (n, p) features of the places.
        names: (p,) names of the features.
        links: links between places, for a graph kernel.
        attributes: (n, q) columns on which the mean may depend linearly; None = no columns.

    Raises:
        ValueError: a graph kernel has no links, or `name` is `EMPIRICAL`, the kernel of a history.
    """
    if name == EMPIRICAL:
        msg = "kernel: empirical is a history of readings, it has no length-scale to be found"
        raise ValueError(msg)
    columns = np.zeros((len(features), 0)) if attributes is None else attributes
    named = tuple(names or ())
    if name == NONE:
        alone = partial(NoNeighbours, len(features))
        family = with_components(alone, features, columns)
        return family, lambda _, __: (_feature_grid(features, named, links, 3).single(),)
    if name in graph_kernels:
        if links is None:
            msg = (
                f"kernel {name!r} needs a map with moves from place to place, on this one "
                "any place may be next; take a kernel of the features"
            )
            raise ValueError(msg)
        from gp_active_sensing.belief.graph_covariance import GraphCovariance, laplacian_spectrum

        spectrum = laplacian_spectrum(links)
        kernel = build_graph_kernel(name)
        # Candidates keep most length-scales when they adapt: share the tables of the kernel.
        along: CovarianceFamily = partial(GraphCovariance, kernel, spectrum, tables={})
        # Features may have any unit: scale them to the extent of the roads.
        extent = float(np.ptp(features, axis=0).max()) or 1.0
        family = with_components(along, features * (spectrum.extent / extent), columns)
        return family, lambda count, _: (_graph_grid(spectrum, count),)
    smooth = partial(FeatureCovariance, build_kernel(name), features)
    grid = partial(_feature_grid, features, named, links)
    return with_components(smooth, features, columns), lambda count, ratios: tuple(
        grid(count, ratio) for ratio in ratios or (None,)
    )


def _warn_of_scales(given: Sequence[float | tuple[float, ...]], fitting: LengthScaleGrid) -> None:
    scales = [s if isinstance(s, tuple) else (s,) for s in given]
    if fitting.shape or any(len(s) > 1 for s in scales):
        return
    low, high = min(scales)[0], max(scales)[0]
    if low > _ODD * fitting.points[-1]:
        what = "farther than the whole map reaches: the field would be a constant"
    elif high < fitting.points[0] / _ODD:
        what = "less than from place to place: no reading would tell of another place"
    else:
        return
    logger.warning(
        "belief.length_scales: all values (%.3g … %.3g) are much %s; values of about %.3g to %.3g "
        "fit the map, and null derives them",
        low,
        high,
        what,
        fitting.points[0],
        fitting.points[-1],
    )


def _feature_grid(
    features: FloatArray,
    names: tuple[str, ...],
    links: Links | None,
    count: int,
    ratio: float | None = None,
) -> LengthScaleGrid:
    if features.ndim != 2 or not len(features) or not np.isfinite(features).all():
        msg = f"features must be (n, p), finite, at least one; got shape {features.shape}"
        raise ValueError(msg)
    axes = ("x", "y", "z")[: features.shape[1]]
    return default_grid(features, names or axes, count, links, ratio)


def _graph_grid(spectrum: Spectrum, count: int) -> LengthScaleGrid:
    finest = 0.0 if spectrum.whole else 2.0 / float(np.sqrt(spectrum.values[-1]))
    return grid_between(max(spectrum.spacing, finest), spectrum.extent, count)
