"""Grid of candidate length-scales where none are given: its start, and how it follows readings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gp_active_sensing.belief.prior import (
    CovarianceFamily,
    HyperParameters,
    LocationCovariance,
    joined,
)
from gp_active_sensing.topology.geometry import spacing_of
from gp_active_sensing.topology.links import Links
from gp_active_sensing.types import FloatArray

_EDGE = 0.15
"""Mass of the smallest or largest length-scale from which the grid grows beyond it."""
_PEAK = 0.5
"""Mass of one length-scale from which its neighbourhood is resolved better."""
_FINE = 1.5
"""Neighbours closer than this ratio are not resolved further."""
_SMALL = 0.05
"""Most mass of a length-scale that goes when others come: what counts is never thrown away."""
_AGAIN = 1.25
"""The candidates move again when there are so many times as many observed places."""
_SPACING, _EXTENT = 0.7, 1.0
"""Where the grid begins, in spacings of the places and in extents of the map."""
_LITTLE = 0.05
"""Share of the belief below which the candidates of a kernel do not follow the readings."""
_NOTHING = 1e-3
"""Part of the whole belief below which parts of a kernel go."""
_FEWER = 0.75
"""Candidates are made again without those that go where so many of them, or less, are left."""
_SAME = 1e-6
"""Distance, in extents of the map, below which two places count as one."""
_LEAST, _MOST = 0.25, 4.0
"""Length-scales never leave these multiples of spacing and extent: below, places are
independent; above, the field is a constant. Readings cannot tell more."""


@dataclass(frozen=True)
class LengthScaleGrid:
    """A log-normal prior over the length-scale, and the points that stand for it.

    A point's prior mass is the density times the logarithmic width it stands for, so that the prior
    stays what it is when points come and go.

    Args:
        points: length-scales, ascending.
        median: of the prior.
        spread: standard deviation of the logarithm.
        low, high: hard limits.
        shape: factor of each feature; () = the same length-scale for all.
    """

    points: tuple[float, ...]
    median: float
    spread: float
    low: float
    high: float
    shape: tuple[float, ...] = ()

    @property
    def half(self) -> tuple[float, ...]:
        """Half of the map's extent, as the covariance takes it: that of a long part."""
        half = 0.5 * self.high / _MOST
        return tuple(half * s for s in self.shape) or (half,)

    def length_scales(self) -> tuple[tuple[float, ...], ...]:
        """Return the candidates as the covariance takes them."""
        return tuple(tuple(p * s for s in self.shape) if self.shape else (p,) for p in self.points)

    def prior(self) -> FloatArray:
        """Return the (K,) prior masses; they sum to one."""
        x = np.log(self.points)
        density = np.exp(-0.5 * ((x - math.log(self.median)) / self.spread) ** 2)
        if len(x) == 1:
            return np.ones(1)
        width = np.gradient(x)
        return np.asarray(density * width / (density * width).sum())

    def single(self) -> LengthScaleGrid:
        """Return the smallest one alone, which never moves: where length-scales do not count."""
        return replace(self, points=(self.low,))

    def adapted(self, mass: FloatArray) -> tuple[LengthScaleGrid, str]:
        """Return the grid that fits a posterior (K,) better, and why; the same and "" if it fits.

        Grows where an end has gathered mass, within the hard limits; resolves the neighbourhood of
        a point that holds most of it. The number of points stays: those with the least mass go, if
        they hold little.
        """
        points = list(self.points)
        if len(points) < 3:
            return self, ""
        added: list[float] = []
        why = ""
        if mass[0] > _EDGE and points[0] > self.low * 1.01:
            added = [max(self.low, points[0] ** 2 / points[1])]
            why = f"{100 * mass[0]:.0f} % on the smallest, {points[0]:.3g}"
        elif mass[-1] > _EDGE and points[-1] < self.high / 1.01:
            added = [min(self.high, points[-1] ** 2 / points[-2])]
            why = f"{100 * mass[-1]:.0f} % on the largest, {points[-1]:.3g}"
        elif mass.max() > _PEAK:
            best = int(mass.argmax())
            near = [points[i] for i in (best - 1, best + 1) if 0 <= i < len(points)]
            wide = [p for p in near if max(p / points[best], points[best] / p) > _FINE]
            added = [math.sqrt(p * points[best]) for p in wide]
            why = f"{100 * mass.max():.0f} % on {points[best]:.3g}"
        # Those that go: the least mass first.
        going = [int(i) for i in np.argsort(mass, kind="stable") if mass[i] < _SMALL][: len(added)]
        added = added[: len(going)]
        if not added:
            return self, ""
        kept = sorted({p for i, p in enumerate(points) if i not in going} | set(added))
        new = replace(self, points=tuple(kept))
        return new, f"{why}: {_listed(points)} → {_listed(kept)}"


def _listed(points: Sequence[float]) -> str:
    return ", ".join(f"{point:.3g}" for point in points)


RATIOS = (0.25, 1.0, 4.0)
"""Candidates of the ratio of axes, in ratios of the map's own steps up and across: places are
laid out about as far apart, in each direction, as the field takes to change. Ratios between
two of them, and somewhat beyond, are predicted nearly as well by their mixture."""


def axis_ratios(features: FloatArray, names: Sequence[str]) -> tuple[float, ...]:
    """Return candidates of the ratio of a length-scale along z to one along x and y.

    The result is () without z, with z alone, and with features other than x, y and z: each feature
    then has its own length-scale.

    Args:
        features: (n, p).
        names: (p,) of the features.
    """
    span = np.ptp(features, axis=0)
    if "z" not in names or not set(names) <= {"x", "y", "z"}:
        return ()
    z = list(names).index("z")
    across = [k for k in range(len(names)) if k != z]
    if not span[z] or not span[across].max(initial=0.0):
        return ()
    points = np.zeros((len(features), 3))
    for k, name in enumerate(names):
        points[:, "xyz".index(name)] = features[:, k]
    steps = spacing_of(points)
    own = span[z] / span[across].max() if steps.up is None else steps.ratio
    return tuple(float(ratio * own) for ratio in RATIOS)


def shape_of(names: Sequence[str], ratio: float) -> tuple[float, ...]:
    """Return the factor of each feature under a ratio of axes."""
    return tuple(ratio if name == "z" else 1.0 for name in names)


def default_grid(
    features: FloatArray,
    names: tuple[str, ...],
    count: int,
    links: Links | None = None,
    ratio: float | None = None,
) -> LengthScaleGrid:
    """Return the grid for a map: log-spaced between the spacing of its places and its extent.

    The spacing is the median distance of places that follow one another: the nearest of all is, on
    a road, the opposite direction a few metres aside.

    Args:
        features: (n, p).
        names: of the features; unless they all are coordinates (x, y, z, or those of an embedding),
            each has a length-scale of its own, in proportion to its range.
        count: number of points.
        links: which places follow one another; None = any may, the nearest of all counts.
        ratio: of the length-scale along z to that along x and y, which the grid then is of.
    """
    span = np.ptp(features, axis=0)
    if ratio is not None:
        shape = shape_of(names, ratio)
        scaled = features / np.array(shape)
    elif all(name in ("x", "y", "z") or name.startswith("mds_") for name in names):
        scaled, shape = features, tuple[float, ...]()
    else:
        usable = np.where(span > 0.0, span, 1.0)
        scaled, shape = features / usable, tuple(float(s) for s in usable)
    extent = float(np.ptp(scaled, axis=0).max()) or 1.0
    spacing = extent
    if len(scaled) > 1:
        distance = _steps(scaled, links)
        positive = distance[distance > _SAME * extent]
        spacing = float(np.median(positive)) if positive.size else extent
    return grid_between(spacing, extent, count, shape)


def _steps(scaled: FloatArray, links: Links | None) -> FloatArray:
    """Return the distances of linked places (n, p), or of each to the nearest of all."""
    if links is None or not links.metres.size:
        from scipy.spatial import cKDTree  # here, since it is slow to import

        return np.asarray(cKDTree(scaled).query(scaled, k=2)[0])[:, 1]
    return np.asarray(np.linalg.norm(scaled[links.first] - scaled[links.second], axis=1))


def grid_between(
    spacing: float, extent: float, count: int, shape: tuple[float, ...] = ()
) -> LengthScaleGrid:
    """Return the grid for places so far apart, on a map of such an extent, log-spaced.

    Args:
        spacing: distance of neighbouring places.
        extent: of the map, in the same unit.
        count: number of points.
        shape: factor of each feature; () = the same length-scale for all.
    """
    first, last = _SPACING * spacing, max(_EXTENT * extent, 2.0 * spacing)
    points = tuple(float(p) for p in np.geomspace(first, last, count))
    return LengthScaleGrid(
        points,
        math.sqrt(first * last),
        max(math.log(last / first) / 4.0, 0.5),
        _LEAST * spacing,
        max(_MOST * extent, last),
        shape,
    )


@dataclass(frozen=True)
class KernelGrid:
    """The candidates of one kernel: a grid of length-scales times fixed parts.

    Args:
        scales: the length-scales.
        parts: what each length-scale is combined with.
        family: makes the covariance of candidates.
        kernel: its name, where there are others; else "".
        share: prior mass. A kernel may have several grids: for each ratio of axes, without a long
            part and with one.
        ladder: all parts that may be, each with the same prior mass; neighbours are alike, from the
            largest nugget to the smallest. (): the parts are fixed.
    """

    scales: LengthScaleGrid
    parts: tuple[HyperParameters, ...]
    family: CovarianceFamily
    kernel: str = ""
    share: float = 1.0
    ladder: tuple[HyperParameters, ...] = ()

    def __len__(self) -> int:
        return len(self.scales.points) * len(self.parts)

    def build(self) -> tuple[LocationCovariance, FloatArray]:
        """Return the covariance under every candidate, length-scale slowest, and the prior (L,)."""
        candidates = [
            replace(parts, length_scales=ell, kernel=self.kernel, long_scales=self.scales.half)
            for ell in self.scales.length_scales()
            for parts in self.parts
        ]
        each = 1.0 / len(self.ladder or self.parts)
        prior = np.repeat(each * self.scales.prior(), len(self.parts))
        return self.family(candidates), prior

    def adapted(self, weights: FloatArray) -> tuple[KernelGrid, str]:
        """Return the grid that fits the posterior (L,) better, and why; "" where only parts went.

        The posterior is that of the whole belief.

        Where it holds more than a little of the belief its length-scales follow, and the neighbours
        come of parts with much of its mass. Parts with next to nothing of the belief go.
        """
        table = weights.reshape(len(self.scales.points), len(self.parts))
        share, of_part = float(table.sum()), table.sum(axis=0)
        scales, why = self.scales, ""
        wanted = {p for p, m in zip(self.parts, of_part, strict=True) if m >= _NOTHING}
        best = sorted(zip(self.parts, of_part, strict=True), key=lambda each: each[1])
        # The best one stays, and the best with attributes: they may begin to vary.
        wanted |= set({bool(p.attribute_std): p for p, _ in best}.values())
        if not self.ladder:
            wanted = set(self.parts)
        if share >= _LITTLE:
            scales, why = scales.adapted(table.sum(axis=1) / share)
            for part, mass in zip(self.parts, of_part / share, strict=True):
                beside = [p for p in self._beside(part) if mass > _EDGE and p not in self.parts]
                wanted.update(beside)
                if beside:
                    reason = f"{100 * mass:.0f} % on a nugget of {part.nugget:.2g}"
                    why = f"{why}; {reason}" if why else reason
        parts = tuple(p for p in self.ladder or self.parts if p in wanted)
        word = f"{self.kernel}: " if self.kernel and why else ""
        return replace(self, scales=scales, parts=parts), word + why

    def _beside(self, part: HyperParameters) -> list[HyperParameters]:
        """Return its neighbours on the ladder, and the same with attributes or without."""
        if part not in self.ladder:
            return []
        at = self.ladder.index(part)
        found = [self.ladder[i] for i in (at - 1, at + 1) if 0 <= i < len(self.ladder)]
        found = [p for p in found if bool(p.attribute_std) == bool(part.attribute_std)]
        same = replace(part, attribute_std=0.0)
        return found + [
            p for p in self.ladder if p != part and replace(p, attribute_std=0.0) == same
        ]


@dataclass(frozen=True)
class CandidateGrid:
    """Candidates Λ that may follow the readings, one kernel after the other.

    Args:
        kernels: each with a prior mass in proportion to its share.
        due: observed places from which on they may move.
    """

    kernels: tuple[KernelGrid, ...]
    due: int = 0

    def build(self) -> tuple[LocationCovariance, FloatArray]:
        """Return the covariance under every candidate, kernel slowest, and the prior (L,)."""
        made = [kernel.build() for kernel in self.kernels]
        shares = [kernel.share for kernel in self.kernels]
        prior = np.concatenate([s * p for s, (_, p) in zip(shares, made, strict=True)])
        return joined([covariance for covariance, _ in made]), prior

    def on(self, other: CandidateGrid) -> CandidateGrid:
        """Return these length-scales over the places, and with the link, of another grid.

        Both have the same kernels.

        Raises:
            ValueError: it has other kernels.
        """
        pairs = list(zip(self.kernels, other.kernels, strict=True))
        if any(mine.kernel != theirs.kernel for mine, theirs in pairs):
            msg = f"expected the kernels {[k.kernel for k in self.kernels]}"
            raise ValueError(msg)
        kernels = tuple(
            replace(new, parts=old.parts, scales=replace(old.scales, high=new.scales.high))
            for old, new in pairs
        )
        return replace(other, kernels=kernels, due=self.due)

    def adapted(self, weights: FloatArray, observed: int) -> tuple[CandidateGrid, str]:
        """Return the grid that fits the posterior weights (L,) better; see `LengthScaleGrid`.

        After a move the places that are observed have to become more by a quarter: what a reading
        says for a length-scale, and the next one against it, moves nothing.
        """
        if observed < self.due:
            return self, ""
        ends = np.cumsum([len(kernel) for kernel in self.kernels])[:-1]
        shares = np.split(weights, ends)
        moved = [k.adapted(mine) for k, mine in zip(self.kernels, shares, strict=True)]
        kernels = tuple(kernel for kernel, _ in moved)
        reasons = [why for _, why in moved if why]
        count = sum(len(kernel) for kernel in kernels)
        if not reasons and count <= _FEWER * len(weights):
            reasons = [f"{len(weights) - count} of {len(weights)} candidates hold next to nothing"]
        if not reasons:
            return self, ""
        due = math.ceil(_AGAIN * observed)
        return CandidateGrid(kernels, due), "; ".join(reasons)
