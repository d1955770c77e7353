r"""Leave-one-out predictions of each place that has readings, without conditioning again.

With the precision :math:`A = (K + N + H H^T)^{-1}` of a candidate's readings and
:math:`\alpha = A (z - m)`, the readings I of one place, given all others, are normal with
[Rasmussen2006, Sec. 5.4.2]

.. math:: S = (A_{II})^{-1}, \quad z_I - \mu = S \alpha_I .

The weights of the candidates are those without the place, too:
:math:`b_{-i}(\lambda) \propto b(\lambda) / p(z_i | z_{-i}, \lambda)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtri

from gp_active_sensing.belief.conditioning import Conditioning
from gp_active_sensing.belief.prior import integrate_scale
from gp_active_sensing.types import FloatArray, IntArray

FEWEST = 5
"""Smallest number of places for which `explained` is computed."""


@dataclass(frozen=True)
class LeaveOneOut:
    """Predictions of the D places with readings, each from the readings of all others.

    Values are those the Gaussian process sees (after the belief's transform).

    Args:
        places: (D,) in the order in which they were first read.
        average: (L, D) of the place's own readings, by precision.
        mean: (L, D) of the noise-free field, given the other places.
        variance: (L, D) of it.
        weights: (L, D) of the candidates, given the other places; each column sums to one.
        belief: (L,) weights of the candidates, given all places.
    """

    places: IntArray
    average: FloatArray
    mean: FloatArray
    variance: FloatArray
    weights: FloatArray
    belief: FloatArray

    @property
    def predicted(self) -> FloatArray:
        """(D,) mean of the field at each place, given the other places."""
        return np.asarray((self.weights * self.mean).sum(axis=0))

    @property
    def read(self) -> FloatArray:
        """(D,) average of each place's own readings."""
        return np.asarray(self.belief @ self.average)

    def errors(self) -> tuple[float, float]:
        """Return two root mean squares: of the places' averages less what is predicted of them.

        From the belief in the readings of the other places, and from the mean of the averages of
        the other places.

        Raises:
            ValueError: there is one place only.
        """
        read = self.read
        count = len(read)
        if count < 2:
            msg = "expected two places with readings at least, got one"
            raise ValueError(msg)
        constant = (read - read.mean()) * (count / (count - 1))
        return _rms(read - self.predicted), _rms(constant)

    @property
    def explained(self) -> float | None:
        """Share of the variance of the averages that the other places explain, at most 1.

        0 or less: they say no more of a place than their mean does. None with fewer than `FEWEST`
        places, or where all averages are equal.
        """
        if len(self.places) < FEWEST:
            return None
        error, constant = self.errors()
        if not constant > 1e-12 * _rms(self.read):
            return None
        return 1.0 - (error / constant) ** 2


def leave_one_out(data: Conditioning, prior: FloatArray) -> LeaveOneOut:
    """Return the predictions of each place from the readings of all others.

    The result is exact, also with several readings of a place. The mean's coefficients and the
    scale are integrated out. Settings that the readings determined before conditioning do not
    change. With an unknown scale these are the centre of a vague mean (the first reading) and the
    scale of the readings' own variances. The slope of the field near a point is another one.

    O(L D³), one candidate after the other.

    Args:
        data: up to date, of readings that do not age; with one reading at least.
        prior: (L,) prior weights of the candidates.
    """
    factor = data.factor
    places, _, average, log_within, squares, _ = data.collapsed()
    row_places = factor.place
    position = {place: i for i, place in enumerate(places.tolist())}
    of_row = np.array([position[place] for place in row_places.tolist()], dtype=np.int64)
    total = np.zeros_like(average)  # precision of each place's readings, as computed with
    for row, i in enumerate(of_row.tolist()):
        total[:, i] += factor.precision[:, row]
    mean, variance = _predictions(data, of_row, len(places))
    spread = variance + 1.0 / total
    own_rest = log_within + 0.5 * squares - 0.5 * np.log(total * spread)
    own_quadratic = squares + (average - mean) ** 2 / spread
    rest = data.rest[:, None] - own_rest
    quadratic = np.maximum(data.quadratic[:, None] - own_quadratic, 0.0)
    evidence = rest - 0.5 * quadratic
    if not data.scale_known:
        evidence, scale = _scaled(data, places, average, rest, quadratic)
        variance = scale * variance
    return LeaveOneOut(
        places,
        average,
        mean,
        variance,
        _normalised(prior[:, None], evidence),
        _normalised(prior[:, None], data.log_evidence[:, None])[:, 0],
    )


def _predictions(data: Conditioning, of_row: IntArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (L, D) of the field at each place, given all others.

    Args:
        data: what was read.
        of_row: (R,) number of the place of each row of the factor.
        count: number D of places.
    """
    factor = data.factor
    U, v, noise = factor.U, factor.v, 1.0 / factor.precision
    alone = np.bincount(of_row, minlength=count) == 1
    single = np.flatnonzero(alone[of_row])
    several = [np.flatnonzero(of_row == i) for i in np.flatnonzero(~alone).tolist()]
    mean, variance = np.zeros((2, len(v), count))
    for index, C in enumerate(factor.C):
        inverse, _ = dtrtri(C, lower=1)
        alpha = inverse.T @ (v[index] - U[index] @ data.coefficients[index])
        G = inverse.T @ U[index]
        GM = G @ data.coefficient_covariance[index]
        diagonal = (inverse * inverse).sum(axis=0)
        # Where the others leave a coefficient of a vague mean to its prior, all but rounding goes.
        diagonal = np.maximum(diagonal - (GM * G).sum(axis=1), np.finfo(np.float64).eps * diagonal)
        value, own = factor.value[index], noise[index]
        S = 1.0 / diagonal[single]
        mean[index, of_row[single]] = value[single] - S * alpha[single]
        variance[index, of_row[single]] = S - own[single]
        for rows in several:
            part = inverse[:, rows]
            block = np.linalg.inv(part.T @ part - GM[rows] @ G[rows].T)
            best = int(np.argmin(own[rows]))  # all say the same; this one with the least rounding
            i = of_row[rows[0]]
            mean[index, i] = value[rows[best]] - block[best] @ alpha[rows]
            variance[index, i] = block[best, best] - own[rows[best]]
    return mean, np.maximum(variance, 0.0)


def _scaled(
    data: Conditioning,
    places: IntArray,
    average: FloatArray,
    rest: FloatArray,
    quadratic: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the evidence (L, D) without each place and the factor of the variances then."""
    readings = data.counts(places)
    apart = (average[0] - data.factor.offset[places]) ** 2
    others = max(len(places) - 1, 1)
    sizes = (apart.sum() - apart) / others
    known = data.basis.shape[1]
    found = [
        integrate_scale(
            rest[:, i], quadratic[:, i], float(readings.sum() - readings[i]), known, float(sizes[i])
        )
        for i in range(len(places))
    ]
    evidence = np.stack([each.log_evidence for each in found], axis=1)
    return evidence, np.stack([each.factor for each in found], axis=1)


def _normalised(prior: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return the weights (L, D) of candidates; each column sums to one."""
    with np.errstate(divide="ignore"):
        logs = np.log(prior) + evidence
    weights = np.exp(logs - logs.max(axis=0))
    return np.asarray(weights / weights.sum(axis=0))


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


GROWTH = 0.1
"""Share by which the number of places has to grow until it is computed again, and …"""
AT_LEAST = 5
"""… places that have to be added."""
MANY = 600
"""Places from which on it is computed more seldom: no place costs more than one of the first so
many."""


@dataclass(frozen=True)
class Explained:
    """Share of the variance of the places' average readings that the other places explain.

    The share is that of the last computation, which costs O(L D³) for D places. The next
    computation follows after a tenth more places, and at least five. A place thus costs
    O(10 L D²). Beyond `MANY` places the computations are rarer, so that this cost does not grow.

    Args:
        share: see `LeaveOneOut.explained`; None = not known.
        places: number D of places that it was computed of; 0 = it was not computed yet.
    """

    share: float | None = None
    places: int = 0

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Explained:
        """Return it from the record of a stage; not computed yet where there is no record."""
        share = record.get("explained")
        return cls(None if share is None else float(share), int(record.get("explained_places", 0)))

    def to_record(self) -> dict[str, Any]:
        """Return the keys of the record of a stage."""
        return {"explained": self.share, "explained_places": self.places}

    @property
    def due(self) -> int:
        """Number of places with which it is to be computed again."""
        if not self.places:
            return FEWEST
        growth = GROWTH * max(1.0, (self.places / MANY) ** 2)
        return self.places + max(AT_LEAST, round(growth * self.places))

    def after(self, places: int, find: Callable[[], LeaveOneOut | None]) -> Explained:
        """Return it for so many read places, found again only where that is due."""
        if places < self.due:
            return self
        found = find()
        return Explained(None if found is None else found.explained, places)
