"""Grid of candidate length-scales from the map, and its adaptation to readings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gp_active_sensing.belief.prior import (
    CovarianceFamily,
    HyperParameters,
    LocationCovariance,
    joined,
)
from gp_active_sensing.topology.geometry import spacing_of
from gp_active_sensing.topology.segments import Links
from gp_active_sensing.types import BoolArray, FloatArray

_EDGE = 0.15
"""Posterior mass above which the smallest or the largest length-scale extends the grid."""
_PEAK = 0.5
"""Posterior mass above which a length-scale gets new neighbours that refine the grid."""
_FINE = 1.5
"""Ratio of neighbouring length-scales above which a new one may be inserted between them."""
_SMALL = 0.05
"""Posterior mass below which a length-scale may be replaced by a new length-scale."""
_AGAIN = 1.25
"""Candidates adapt again when the number of observed places has grown by this factor."""
_SPACING, _EXTENT = 0.7, 1.0
"""Smallest initial length-scale [spacings of places] and largest one [extents of the map]."""
_LITTLE = 0.05
"""Smallest posterior weight of a kernel at which its length-scales adapt."""
_NOTHING = 1e-3
"""Posterior weight below which a variance component of a kernel may be removed."""
_FEWER = 0.75
"""A change that only removes candidates is made if at most this fraction of them remains."""
_SAME = 1e-6
"""Distance below which two places count as one [extents of the map]."""
_LEAST, _MOST = 0.25, 4.0
"""Smallest length-scale of a grid [spacings of places] and largest one [extents of the map].
Smaller length-scales make places independent, and larger length-scales make the field constant."""
SLOPE, STEEPEST = 0.35, 2
"""Slopes of the log-amplitude along an axis are multiples of the step `SLOPE`. `STEEPEST` limits
the total number of steps along all axes. A slope of one step changes the amplitude by a factor of
3.4 over a map with evenly spread places."""
VARYING, SLOPE_STEPS = 0.1, 1.5
"""Prior mass of a small slope relative to a constant amplitude, and prior standard deviation of
slopes [steps of `SLOPE`]."""
_LONG = 0.125
"""The amplitude changes only along axes that are longer than this fraction of the longest axis."""
_BOTH_ENDS = 0.9
"""The amplitude changes along an axis only if the read places span this fraction of the axis."""
_LEADING = 0.15
"""Smallest posterior weight at which a kernel gets candidates with a changing amplitude."""


@dataclass(frozen=True)
class LengthScaleGrid:
    """Log-normal prior over the length-scale, discretised at a few points.

    The prior mass of a point is the prior density times the logarithmic width of the interval that
    the point represents. New points therefore do not change the prior.

    Args:
        points: length-scales, ascending.
        median: median of the prior.
        spread: prior standard deviation of the length-scale's logarithm.
        low, high: smallest and largest possible point.
        shape: (p,) factor of each feature's length-scale; () = one length-scale for all.
    """

    points: tuple[float, ...]
    median: float
    spread: float
    low: float
    high: float
    shape: tuple[float, ...] = ()

    @property
    def half(self) -> tuple[float, ...]:
        """Length-scales of a long-range component: half of the map's extent."""
        half = 0.5 * self.high / _MOST
        return tuple(half * s for s in self.shape) or (half,)

    def length_scales(self) -> tuple[tuple[float, ...], ...]:
        """Return the length-scales at each point: one for all features, or one per feature."""
        return tuple(tuple(p * s for s in self.shape) if self.shape else (p,) for p in self.points)

    def prior(self) -> FloatArray:
        """Return the (K,) prior masses of the points; they sum to one."""
        x = np.log(self.points)
        density = np.exp(-0.5 * ((x - math.log(self.median)) / self.spread) ** 2)
        if len(x) == 1:
            return np.ones(1)
        width = np.gradient(x)
        return np.asarray(density * width / (density * width).sum())

    def single(self) -> LengthScaleGrid:
        """Return a grid of one fixed point, for a kernel without length-scales."""
        return replace(self, points=(self.low,))

    def adapted(self, mass: FloatArray) -> tuple[LengthScaleGrid, str]:
        """Return a grid adapted to the posterior `mass` (K,), and the reason; "" = no change.

        Much mass on the first or last point extends the grid within its limits. Most of the mass on
        one point refines the grid around it. Each new point replaces a point with little mass.
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
        # Points with the least mass are replaced first.
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
"""Candidate ratios of the length-scale along z to the length-scale along x and y. A ratio of 1
means the ratio of vertical to horizontal distances between neighbouring places. A mixture of two
candidates also gives good predictions for fields with a ratio between theirs."""


def axis_ratios(features: FloatArray, names: Sequence[str]) -> tuple[float, ...]:
    """Return candidate ratios of the length-scale along z to the length-scale along x and y.

    The result is empty if all places have the same height or the same horizontal position. It is
    also empty if `features` (n, p) contain anything but x, y and z.
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


def default_grid(
    features: FloatArray,
    names: tuple[str, ...],
    count: int,
    links: Links | None = None,
    ratio: float | None = None,
) -> LengthScaleGrid:
    """Return a log-spaced grid of length-scales from the spacing of places to the map's extent.

    The spacing is the median length of links. With links, nearest places are not used: on a road,
    the nearest place may be the opposite direction of the same segment.

    Args:
        features: (n, p) features of the places.
        names: (p,) names of the features. Coordinates (x, y, z, or of an embedding) share a
            length-scale. Other features have length-scales in proportion to their ranges.
        count: number of length-scales.
        links: links between places; None = each place is linked to its nearest place.
        ratio: ratio of the length-scale along z to the length-scale along x and y; None = no ratio.
    """
    span = np.ptp(features, axis=0)
    if ratio is not None:
        shape = tuple(ratio if name == "z" else 1.0 for name in names)
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
    """Return the lengths of all links; without links, the distances to the nearest places."""
    if links is None or not links.metres.size:
        from scipy.spatial import cKDTree  # here, since it is slow to import

        return np.asarray(cKDTree(scaled).query(scaled, k=2)[0])[:, 1]
    return np.asarray(np.linalg.norm(scaled[links.first] - scaled[links.second], axis=1))


def grid_between(
    spacing: float, extent: float, count: int, shape: tuple[float, ...] = ()
) -> LengthScaleGrid:
    """Return a log-spaced grid for a spacing of places and an extent of a map.

    Args:
        spacing: distance of neighbouring places.
        extent: extent of the map, in the unit of `spacing`.
        count: number of points.
        shape: (p,) factor of each feature's length-scale; () = one length-scale for all.
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
    """Candidates of one kernel: all combinations of length-scales and variance components.

    Args:
        scales: grid of the length-scales.
        parts: variance components; each is combined with each length-scale.
        family: function that builds the covariance of candidates.
        kernel: name of the kernel; "" = there is only one kernel.
        share: prior mass of this grid; a kernel may have several grids.
        ladder: all possible `parts`, with equal prior masses. A part with much weight adds its
            neighbours in this order; see `adapted`. () = `parts` are fixed.
        tilts: True if the amplitude of the field may change along the axes of the map.
    """

    scales: LengthScaleGrid
    parts: tuple[HyperParameters, ...]
    family: CovarianceFamily
    kernel: str = ""
    share: float = 1.0
    ladder: tuple[HyperParameters, ...] = ()
    tilts: bool = False

    def __len__(self) -> int:
        return len(self.scales.points) * len(self.parts)

    def build(self) -> tuple[LocationCovariance, FloatArray]:
        """Return the candidates' covariance, sorted by length-scale, and their prior mass (L,)."""
        candidates = [
            replace(parts, length_scales=ell, kernel=self.kernel, long_scales=self.scales.half)
            for ell in self.scales.length_scales()
            for parts in self.parts
        ]
        each = np.array([_relative_prior(part) for part in self.parts])
        each /= len(self.ladder or self.parts)
        prior = (self.scales.prior()[:, None] * each).ravel()
        return self.family(candidates), prior

    def adapted(self, weights: FloatArray, axes: Sequence[bool]) -> tuple[KernelGrid, str]:
        """Return a grid adapted to the posterior, and the reason; "" = nothing was added.

        A kernel with enough posterior weight adapts its length-scales. Its `parts` with much weight
        get neighbours from the `ladder`. Parts with a negligible weight are removed. If `tilts` is
        True, the grid gets copies of the most probable part, in which the slope of the amplitude
        along one of the `axes` is changed.

        Args:
            weights: (L,) posterior weights of this grid's candidates; the sum may be below 1.
            axes: (p,) mask of the axes along which the amplitude may change.
        """
        table = weights.reshape(len(self.scales.points), len(self.parts))
        share, of_part = float(table.sum()), table.sum(axis=0)
        scales, reasons = self.scales, list[str]()
        wanted = {p for p, m in zip(self.parts, of_part, strict=True) if m >= _NOTHING}
        best = sorted(zip(self.parts, of_part, strict=True), key=lambda each: each[1])
        # Keep the best part with and without attributes: readings may favour either of them later.
        wanted |= set({bool(p.attribute_std): p for p, _ in best}.values())
        if not self.ladder:
            wanted = set(self.parts)
        if share >= _LITTLE:
            scales, why = scales.adapted(table.sum(axis=1) / share)
            reasons += [why] if why else []
            for part, mass in zip(self.parts, of_part / share, strict=True):
                beside = [p for p in self._beside(part) if mass > _EDGE and p not in self.parts]
                wanted.update(beside)
                if beside:
                    reasons.append(f"{100 * mass:.0f} % on a nugget of {part.nugget:.2g}")
            first = int(of_part.argmax())
            if self.tilts and share >= _LEADING and of_part[first] > _EDGE * share:
                tilted = set(_tilted(self.parts[first], axes)) - set(self.parts)
                wanted |= tilted
                if tilted:
                    reasons.append(f"{len(tilted)} amplitudes that change over the map")
        order = {part: i for i, part in enumerate(self.ladder or self.parts)}
        parts = tuple(sorted(wanted, key=lambda p: (order.get(_level(p), -1), p.amplitude_slopes)))
        word = f"{self.kernel}: " if self.kernel and reasons else ""
        return replace(self, scales=scales, parts=parts), word + "; ".join(reasons)

    def _beside(self, part: HyperParameters) -> list[HyperParameters]:
        """Return the parts next to `part` in `ladder`, and parts that differ in attributes only."""
        base = _level(part)
        if base not in self.ladder:
            return []
        at = self.ladder.index(base)
        found = [self.ladder[i] for i in (at - 1, at + 1) if 0 <= i < len(self.ladder)]
        found = [p for p in found if bool(p.attribute_std) == bool(base.attribute_std)]
        same = replace(base, attribute_std=0.0)
        found += [p for p in self.ladder if p != base and replace(p, attribute_std=0.0) == same]
        return [replace(p, amplitude_slopes=part.amplitude_slopes) for p in found]

    def level(self) -> KernelGrid:
        """Return the grid without `amplitude_slopes`."""
        return replace(self, parts=tuple(dict.fromkeys(map(_level, self.parts))))


def _level(part: HyperParameters) -> HyperParameters:
    return replace(part, amplitude_slopes=())


def _tilted(part: HyperParameters, axes: Sequence[bool]) -> list[HyperParameters]:
    """Return copies of `part`; in each, the slope along one axis is one step larger or smaller."""
    found = []
    now = part.amplitude_slopes or (0.0,) * len(axes)
    for axis in np.flatnonzero(axes).tolist():
        for step in (-1, 1):
            steps = [round(slope / SLOPE) for slope in now]
            steps[axis] += step
            slopes = tuple(SLOPE * each for each in steps) if any(steps) else ()
            if sum(map(abs, steps)) <= STEEPEST:
                found.append(replace(part, amplitude_slopes=slopes))
    return found


def _relative_prior(part: HyperParameters) -> float:
    """Return the prior mass of `part` relative to that of the same part without slopes."""
    if not part.amplitude_slopes:
        return 1.0
    squares = sum((slope / SLOPE) ** 2 for slope in part.amplitude_slopes)
    return VARYING * math.exp(-0.5 * squares / SLOPE_STEPS**2)


@dataclass(frozen=True)
class CandidateGrid:
    """Candidates Λ, ordered by kernel, that adapt to the readings.

    Args:
        kernels: grids of the kernels, with prior masses in proportion to `share`.
        due: number of observed places at which the candidates adapt next.
        coordinates: (n, p) coordinates of the places; None = the features are no coordinates.
    """

    kernels: tuple[KernelGrid, ...]
    due: int = 0
    coordinates: FloatArray | None = field(default=None, compare=False, repr=False)

    def build(self) -> tuple[LocationCovariance, FloatArray]:
        """Return the candidates' covariance, ordered by kernel, and their prior masses (L,)."""
        made = [kernel.build() for kernel in self.kernels]
        shares = [kernel.share for kernel in self.kernels]
        prior = np.concatenate([s * p for s, (_, p) in zip(shares, made, strict=True)])
        return joined([covariance for covariance, _ in made]), prior

    def on(self, other: CandidateGrid) -> CandidateGrid:
        """Return a grid over the places of `other`, with this grid's length-scales and parts.

        Raises:
            ValueError: `other` has other kernels.
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

    def level(self) -> CandidateGrid | None:
        """Return the grid without `amplitude_slopes`; None if no candidate has slopes."""
        kernels = tuple(kernel.level() for kernel in self.kernels)
        same = all(new.parts == old.parts for new, old in zip(kernels, self.kernels, strict=True))
        return None if same else replace(self, kernels=kernels)

    def _axes_read(self, visited: BoolArray) -> tuple[bool, ...]:
        """Return a mask (p,) of the axes along which the `visited` (n,) places span the map.

        Along other axes, the amplitude must not change. Otherwise extrapolation could predict a
        small amplitude in an unread region, and the robot would not go there.
        """
        if self.coordinates is None or not visited.any():
            return ()
        extent, read = np.ptp(self.coordinates, axis=0), np.ptp(self.coordinates[visited], axis=0)
        long = extent > _LONG * extent.max(initial=0.0)
        return tuple((long & (read >= _BOTH_ENDS * extent)).tolist())

    def adapted(
        self, weights: FloatArray, visited: BoolArray, *, tilt: bool
    ) -> tuple[CandidateGrid, str]:
        """Return a grid adapted to the posterior weights, and the reason; "" = no change.

        Each change requires a quarter more observed places than the change before, which prevents
        oscillation. See `LengthScaleGrid`.

        Args:
            weights: (L,) posterior weights of the candidates.
            visited: (n,) mask of places with readings.
            tilt: True if amplitudes may begin to change over the map.
        """
        observed = int(np.count_nonzero(visited))
        if observed < self.due:
            return self, ""
        axes = self._axes_read(visited) if tilt else ()
        ends = np.cumsum([len(kernel) for kernel in self.kernels])[:-1]
        shares = np.split(weights, ends)
        moved = [k.adapted(mine, axes) for k, mine in zip(self.kernels, shares, strict=True)]
        kernels = tuple(kernel for kernel, _ in moved)
        reasons = [why for _, why in moved if why]
        count = sum(len(kernel) for kernel in kernels)
        if not reasons and count <= _FEWER * len(weights):
            reasons = [f"{len(weights) - count} of {len(weights)} candidates hold next to nothing"]
        if not reasons:
            return self, ""
        due = math.ceil(_AGAIN * observed)
        return replace(self, kernels=kernels, due=due), "; ".join(reasons)
