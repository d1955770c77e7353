r"""Link of a quantity with few observed places to the map of another quantity with many.

In the two-level autoregressive model [Kennedy2000], the sparse quantity B contains a multiple of
the dense quantity A:

.. math:: f_B(x) = m_B(x) + c\, \frac{f_A(x) - m_A}{s_A} + r_B(x), \quad c \sim N(0, s_c^2).

r_B is an independent field with the candidates λ of B's belief. Given the readings of A,
:math:`f_A` has mean :math:`\mu` and covariance C over all candidates of A. Let
:math:`a = (\mu - m_A) / s_A`. After integrating c out, the covariance of :math:`f_B` is

.. math:: K_r + s_c^2\, (a a^T + C / s_A^2).

B is approximated by a Gaussian process with this covariance. The term :math:`a a^T` adds an unknown
multiple of a to B's mean. The term with C adds the uncertainty of A's map to the uncertainty of B.
Let :math:`m_A` be the mean of :math:`\mu` over the places, and :math:`s_A^2` the mean of
:math:`(\mu - m_A)^2 + \operatorname{diag} C`. The link then explains :math:`s_c^2` of a place's
variance, on average. The candidate values of :math:`s_c^2` are `SHARES` times the variance of r_B.
They are weighted by the evidence. The value 0 means that there is no link.

If A and B were read at the same places with the same precision, A's map adds no information
(autokrigeability) [Wackernagel2003]. A link is therefore made only if A was read at more places.

C is computed with the most probable candidates of A. On a map of more than `_MOST` places, C is
approximated with `_MOST` inducing places [Snelson2006]. The variances of the places stay exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.grid import CandidateGrid
from gp_active_sensing.belief.prior import HyperParameters, LocationCovariance, Points
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

AUTO = "auto"
"""Value of `link` for a link to the main quantity, if both quantities can be linked."""
SHARES = (0.0, 1.0, 10.0)
"""Candidate values of the variance that the link explains, relative to the variance of the
independent field r_B (see the module)."""
_PRIOR = np.array([0.8, 0.1, 0.1])
"""Prior weights of `SHARES`. The absence of a link has a large weight, because a few readings of
unrelated fields may agree by chance."""
_CANDIDATES = 4
"""Largest number of candidates λ of the dense quantity; the most probable are used."""
_MOST = 300
"""Largest number of inducing places for the covariance of the dense quantity."""
_GROWTH = 1.1
"""A link is renewed when the dense quantity's number of observed places grows by this factor."""
_DENSER = 1.25
"""A link requires that the dense quantity has at least this factor times as many observed places as
the sparse quantity."""
_LEAST = 3
"""Smallest number of observed places of a sparse quantity with a link. The first two readings only
determine the mean and the scale."""
_ROUNDING = 1e-13
"""Eigenvalues up to this fraction of the largest eigenvalue count as rounding errors."""


class Link(NamedTuple):
    """Covariance ``a aᵀ + C / s_A²`` of a link, stored as ``Z Zᵀ + diag(own)``.

    The module explains a, C and s_A.

    Args:
        columns: (n, r) Z; its first column is a.
        own: (n,) part of the places' variances that ``Z Zᵀ`` does not contain.
        places: number of observed places of the dense quantity when the link was made.
    """

    columns: FloatArray
    own: FloatArray
    places: int

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (r, c) covariance of the link between places `rows` and `columns`."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        found = self.columns[rows] @ self.columns[columns].T
        at, to = np.nonzero(rows[:, None] == columns)
        found[at, to] += self.own[rows[at]]
        return np.asarray(found)

    def variance(self, places: IntArray) -> FloatArray:
        """Return the (k,) variance of the link at `places`."""
        return np.asarray(np.square(self.columns[places]).sum(axis=1) + self.own[places])


def link_of(source: Belief) -> Link:
    """Return the link to the map of the dense quantity `source`.

    The map is used after the transform of `source`. Later readings of `source` do not change the
    link. O(L' |D| n m) for L' candidates λ and m = `_MOST` places.
    """
    every, weights = np.arange(source.n), source.weights
    which = np.sort(np.argsort(-weights, kind="stable")[:_CANDIDATES])
    w = weights[which] / weights[which].sum()
    means, variances = source.marginals_under(every, which)
    mean = w @ means
    apart = means - mean
    variance = w @ (variances + apart**2)
    some = np.unique(np.linspace(0, source.n - 1, min(source.n, _MOST)).round().astype(np.int64))
    cross = (apart.T * w) @ apart[:, some]
    for share, row in zip(w.tolist(), which, strict=True):  # one at a time to limit memory
        cross += share * source.between(every, some, np.array([row]))[0]
    values, vectors = np.linalg.eigh(cross[some])
    kept = values > _ROUNDING * max(float(values[-1]), 0.0)
    roots = cross @ (vectors[:, kept] / np.sqrt(values[kept]))
    middle = float(mean.mean())
    size = float((np.square(mean - middle) + variance).mean()) or 1.0
    own = np.maximum(variance - np.square(roots).sum(axis=1), 0.0)
    own[some] = 0.0
    a = (mean - middle) / np.sqrt(size)
    columns = np.column_stack([a, roots / np.sqrt(size)])
    return Link(columns, own / size, int(np.count_nonzero(source.visited)))


class LinkedCovariance:
    """Covariance ``K_r + s_c² (a aᵀ + C / s_A²)`` of a sparse quantity; see the module.

    Each candidate λ of K_r is combined with each of `SHARES`; L' of the combinations are used.

    Args:
        rest: K_r under L candidates λ.
        link: link to the dense quantity.
        which: ascending indices; i + k L is candidate i with ``SHARES[k]``. None = all.
    """

    def __init__(
        self, rest: LocationCovariance, link: Link, which: Sequence[int] | None = None
    ) -> None:
        L = len(rest.hyperparameters)
        self.rest, self.link, self.n = rest, link, rest.n
        self.which = np.arange(len(SHARES) * L) if which is None else np.array(which)
        used, self._row = np.unique(self.which % L, return_inverse=True)
        self._some = rest if len(used) == L else rest.only(used.tolist())
        own = [rest.hyperparameters[i] for i in (self.which % L).tolist()]
        share = np.array(SHARES)[self.which // L]
        self.size: FloatArray = share * [h.variance for h in own]
        self.hyperparameters: tuple[HyperParameters, ...] = tuple(
            replace(h, attribute_std=float(np.sqrt(h.attribute_std**2 + size)))
            for h, size in zip(own, self.size.tolist(), strict=True)
        )

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (L', r, c) prior covariance of `rows` and `columns` under each candidate λ."""
        found = self._some.between(rows, columns)[self._row]
        return self._with(found, self.link.between(rows, columns))

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L', r, m) prior covariance; the link uses the place nearest to each point."""
        found = self._some.with_points(rows, points)[self._row]
        return self._with(found, self.link.between(rows, points.nearest))

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L', m) prior variance at `locations` under each candidate λ."""
        return self._with(self._some.variance(locations)[self._row], self.link.variance(locations))

    def only(self, which: Sequence[int]) -> LinkedCovariance:
        """Return this covariance restricted to the hyper-parameter candidates `which`."""
        return LinkedCovariance(self.rest, self.link, self.which[np.asarray(which)].tolist())

    def _with(self, found: FloatArray, shared: FloatArray) -> FloatArray:
        on = np.flatnonzero(self.size)
        found[on] += self.size[on].reshape(-1, *[1] * shared.ndim) * shared
        return found


@dataclass(frozen=True, kw_only=True)
class LinkedGrid(CandidateGrid):
    """Grid of adaptive candidates λ; each is combined with each of `SHARES`."""

    link: Link

    def build(self) -> tuple[LocationCovariance, FloatArray]:
        """Return the candidates' covariance, ordered by `SHARES`, and their prior masses (L',)."""
        covariance, prior = super().build()
        return LinkedCovariance(covariance, self.link), np.outer(_PRIOR, prior).ravel()

    def adapted(
        self, weights: FloatArray, visited: BoolArray, *, tilt: bool
    ) -> tuple[CandidateGrid, str]:
        """Return a grid adapted to the posterior, and the reason; see `CandidateGrid.adapted`."""
        both = weights.reshape(len(SHARES), -1).sum(axis=0)
        return super().adapted(both, visited, tilt=tilt)


def check_linked(template: Belief, source: Belief) -> None:
    """Reject beliefs that cannot be linked.

    Raises:
        ConfigError: one of the quantities has drift, or the numbers of places differ.
    """
    if template.drift.changing or source.drift.changing:
        msg = (
            "link: a quantity that changes in time cannot be linked, nor another one linked to it; "
            "remove link, or belief.drift"
        )
        raise ConfigError(msg)
    if template.n != source.n:
        msg = f"link: expected beliefs over as many places, got {template.n} and {source.n}"
        raise ConfigError(msg)


def linked(template: Belief, source: Belief) -> Belief:
    """Return a belief without readings that is linked to the map of another quantity.

    Args:
        template: belief about the sparse quantity before its first reading, without a link.
        source: belief about the dense quantity, over the same places.

    Raises:
        ConfigError: see `check_linked`.
    """
    check_linked(template, source)
    link = link_of(source)
    covariance = LinkedCovariance(template.covariance, link)
    prior = np.outer(_PRIOR, template.prior_weights).ravel()
    grid = template.grid
    if grid is not None:
        grid = LinkedGrid(grid.kernels, grid.due, grid.coordinates, link=link)
    return template.among(covariance, prior, grid)


def probability_of_link(belief: Belief) -> float:
    """Return the posterior probability that the link explains any variance; 0 without a link."""
    if not isinstance(belief.covariance, LinkedCovariance):
        return 0.0
    return float(belief.weights[belief.covariance.size > 0.0].sum())


def follow(belief: Belief, template: Belief, source: Belief, *, now: bool = False) -> bool:
    """Make, renew or remove the link of a belief if due; return whether the belief changed.

    A link requires that the dense quantity has a quarter more observed places than the sparse
    quantity. The link is renewed when this number of the dense quantity has grown by a tenth. With
    `now`, any growth suffices. The belief keeps its readings. The result depends only on the
    readings and their order. `template` and `source` are as in `linked`.
    """
    own, places = (int(np.count_nonzero(each.visited)) for each in (belief, source))
    dense = own >= _LEAST and places >= _DENSER * own
    if isinstance(belief.covariance, LinkedCovariance):
        then = belief.covariance.link.places
        if dense and (places <= then or not (now or places >= _GROWTH * then)):
            return False
    elif not dense:
        return False
    belief.move_to(linked(template, source) if dense else template, others=True)
    return True
