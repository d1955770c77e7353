r"""Link of a quantity that is read at few places to the map of another that is read at many.

The two-level autoregressive model [Kennedy2000]: the sparse quantity B is in part a multiple of the
dense one A,

.. math:: f_B(x) = m_B(x) + c\, \frac{f_A(x) - m_A}{s_A} + r_B(x), \quad c \sim N(0, s_c^2).

r_B is an independent field with the candidates of B's own belief. The readings of A give
:math:`f_A` the mean :math:`\mu` and the covariance C, all candidates of A together. With
:math:`a = (\mu - m_A) / s_A` the covariance of :math:`f_B`, c integrated out, is

.. math:: K_r + s_c^2\, (a a^T + C / s_A^2),

and B is taken to be Gaussian with it: the column a is a shrinking part of B's mean, and what is not
known of A's map adds to B's uncertainty. :math:`m_A` and :math:`s_A^2` are the mean of the map of A
over the places, and the mean of :math:`(\mu - m_A)^2 + \operatorname{diag} C`, so that the link
explains :math:`s_c^2` of the variance of a place, on average. :math:`s_c^2` is one of `SHARES` of
the variance of r_B. Their evidence weighs them; 0 is no link at all.

Where A was read at the same places as B and equally precisely its map adds nothing to what B's own
readings say (autokrigeability) [Wackernagel2003], but r_B is smaller than B and its length-scale is
harder to learn. So there is no link unless A was read at more places.

C is that of the most probable candidates of A. On a map of more than `_MOST` places it is what the
covariance with so many places, evenly spread, explains of it, with the exact variance at each place
[Snelson2006].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from gp_active_sensing.belief.belief import Belief
from gp_active_sensing.belief.grid import CandidateGrid
from gp_active_sensing.belief.prior import HyperParameters, LocationCovariance, Points
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.types import FloatArray, IntArray

AUTO = "auto"
"""Word for a link to the map of the main quantity, where both can be linked."""
SHARES = (0.0, 1.0, 10.0)
"""Variance that the link explains, in variances of what is the quantity's own."""
_PRIOR = np.array([0.8, 0.1, 0.1])
"""Prior weights of `SHARES`: ten readings of unrelated fields agree by chance now and then."""
_CANDIDATES = 4
"""Candidates of the dense quantity at most, the most probable ones."""
_MOST = 300
"""Places at most between which the covariance of the dense quantity is exact."""
_GROWTH = 1.1
"""Factor on the number of places read of the dense quantity from which a link is made again."""
_DENSER = 1.25
"""Places read of the dense quantity, in those of the sparse one, from which there is a link."""
_LEAST = 3
"""Places read of the sparse quantity from which there is a link. The first reading determines the
mean and the second the scale."""
_ROUNDING = 1e-13
"""Eigenvalues below this share of the largest are rounding."""


class Link(NamedTuple):
    """``a aᵀ + C / s_A²`` as ``Z Zᵀ + diag(own)``.

    Args:
        columns: (n, r) Z; a is the first column.
        own: (n,) the rest of the variance of each place.
        places: number of places at which the dense quantity had been read.
    """

    columns: FloatArray
    own: FloatArray
    places: int

    def between(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the (r, c) covariance of what the dense quantity says at places."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        found = self.columns[rows] @ self.columns[columns].T
        at, to = np.nonzero(rows[:, None] == columns)
        found[at, to] += self.own[rows[at]]
        return np.asarray(found)

    def variance(self, places: IntArray) -> FloatArray:
        """Return the (k,) variance at some places."""
        return np.asarray(np.square(self.columns[places]).sum(axis=1) + self.own[places])


def link_of(source: Belief) -> Link:
    """Return the link to the map of a dense quantity, as its Gaussian process sees it.

    Later readings of `source` do not change the link. O(L' |D| n m) for m = `_MOST` places.
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
    for share, row in zip(w.tolist(), which, strict=True):  # one after the other: memory
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
    """``K_r + s_c² (a aᵀ + C / s_A²)`` under every candidate of r_B, once for each of `SHARES`.

    Args:
        rest: K_r under L candidates.
        link: to the dense quantity.
        which: numbers of the candidates kept, ascending; number i + k L is candidate i with share
            number k. None = all.
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
        """Return the (L', r, c) covariance of the latent field."""
        found = self._some.between(rows, columns)[self._row]
        return self._with(found, self.link.between(rows, columns))

    def with_points(self, rows: IntArray, points: Points) -> FloatArray:
        """Return the (L', r, m) covariance at places and at points; the link is that of places."""
        found = self._some.with_points(rows, points)[self._row]
        return self._with(found, self.link.between(rows, points.nearest))

    def variance(self, locations: IntArray) -> FloatArray:
        """Return the (L', m) prior variance of the latent field."""
        return self._with(self._some.variance(locations)[self._row], self.link.variance(locations))

    def only(self, which: Sequence[int]) -> LinkedCovariance:
        """Return the same under some of the candidates only."""
        return LinkedCovariance(self.rest, self.link, self.which[np.asarray(which)].tolist())

    def _with(self, found: FloatArray, shared: FloatArray) -> FloatArray:
        on = np.flatnonzero(self.size)
        found[on] += self.size[on].reshape(-1, *[1] * shared.ndim) * shared
        return found


@dataclass(frozen=True)
class LinkedGrid(CandidateGrid):
    """Candidates that may follow the readings, once for each of `SHARES`."""

    link: Link = field(default_factory=lambda: Link(np.zeros((0, 1)), np.zeros(0), 0))

    def build(self) -> tuple[LocationCovariance, FloatArray]:
        """Return the covariance under every candidate, share slowest, and the prior (L',)."""
        covariance, prior = super().build()
        return LinkedCovariance(covariance, self.link), np.outer(_PRIOR, prior).ravel()

    def adapted(self, weights: FloatArray, observed: int) -> tuple[CandidateGrid, str]:
        """Return the grid that fits the posterior better; see `CandidateGrid.adapted`."""
        found, why = super().adapted(weights.reshape(len(SHARES), -1).sum(axis=0), observed)
        return (LinkedGrid(found.kernels, found.due, self.link) if why else self), why


def check_linked(template: Belief, source: Belief) -> None:
    """Refuse beliefs that cannot be linked.

    Raises:
        ConfigError: one of the quantities changes in time, or the places are others.
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
        source: belief about the dense one, over the same places.

    Raises:
        ConfigError: see `check_linked`.
    """
    check_linked(template, source)
    link = link_of(source)
    covariance = LinkedCovariance(template.covariance, link)
    prior = np.outer(_PRIOR, template.prior_weights).ravel()
    grid = template.grid
    if grid is not None:
        grid = LinkedGrid(grid.kernels, grid.due, link)
    return template.among(covariance, prior, grid)


def probability_of_link(belief: Belief) -> float:
    """Return the probability that a belief gives to a link, of any size; 0 where none was made."""
    if not isinstance(belief.covariance, LinkedCovariance):
        return 0.0
    return float(belief.weights[belief.covariance.size > 0.0].sum())


def follow(belief: Belief, template: Belief, source: Belief, *, now: bool = False) -> bool:
    """Make, renew or remove the link of a belief where that is due; return whether it was.

    A link is made once the dense quantity was read at a quarter more places than the sparse one,
    and removed when that is no longer so. It is renewed when the dense quantity was read at a tenth
    more places. The readings stay. The result depends on what was read, and in which order, only.

    The belief changes in place; `template` and `source` as of `linked`. With `now` any new place of
    the dense quantity counts.
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
