r"""Leave-one-out predictions of each observed place, computed from one conditioned belief.

`factor.Factor` defines K, N, H and z under a candidate λ; m is the known part of the mean. Let
:math:`A = (K + N + H H^T)^{-1}` and :math:`\alpha = A (z - m)`. Given all other readings, the
readings I of one place are normal with mean μ and covariance S [Rasmussen2006, Sec. 5.4.2]:

.. math:: S = (A_{II})^{-1}, \quad z_I - \mu = S \alpha_I .

The weights of the candidates also ignore the readings of the place:
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
    """Predictions of D observed places, each from the readings of all other places.

    All values are after the belief's transform.

    Args:
        places: (D,) observed places, in the order of their first readings.
        average: (L, D) average of each place's readings, weighted by precision.
        mean: (L, D) mean of the noise-free field, given the other places.
        variance: (L, D) variance of the noise-free field, given the other places.
        weights: (L, D) weights of the candidates λ, given the other places; columns sum to one.
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
        """(D,) average of the readings of each place."""
        return np.asarray(self.belief @ self.average)

    def errors(self) -> tuple[float, float]:
        """Return the root mean square errors of two predictions of the places' averages.

        The first prediction is by the belief, given the other places. The second prediction is the
        mean of the other places' averages.

        Raises:
            ValueError: there is only one place.
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
        """R²: fraction of the variance of the places' average readings that `predicted` explains.

        If R² is 0 or less, the belief predicts no better than the mean of the other places'
        averages. R² is None with fewer than `FEWEST` places, or if all averages are equal.
        """
        if len(self.places) < FEWEST:
            return None
        error, constant = self.errors()
        if not constant > 1e-12 * _rms(self.read):
            return None
        return 1.0 - (error / constant) ** 2


def leave_one_out(data: Conditioning, prior: FloatArray) -> LeaveOneOut:
    """Return the predictions of each place from the readings of all other places.

    The result is exact, even with several readings of a place. The mean's coefficients and the
    scale are integrated out. The centre of a vague mean, the scale of the readings' own variances
    and the field's slope still depend on the readings of the predicted place.

    O(L D³). The candidates are computed one after another to limit memory.

    Args:
        data: updated conditioning without ageing, with at least one reading.
        prior: (L,) prior weights of the candidates.
    """
    factor = data.factor
    places, _, average, log_within, squares, _ = data.collapsed()
    position = {place: i for i, place in enumerate(places.tolist())}
    of_row = np.array([position[place] for place in factor.place.tolist()], dtype=np.int64)
    total = np.zeros_like(average)  # precision of each place's readings in the factor
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
    """Return mean and variance (L, D) of the field at each place, given all other places.

    `of_row` (R,) is the index of the place of each row of the factor. `count` is D.
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
        # If the other places do not determine a vague mean, the difference is a rounding error.
        diagonal = np.maximum(diagonal - (GM * G).sum(axis=1), np.finfo(np.float64).eps * diagonal)
        value, own = factor.value[index], noise[index]
        S = 1.0 / diagonal[single]
        mean[index, of_row[single]] = value[single] - S * alpha[single]
        variance[index, of_row[single]] = S - own[single]
        for rows in several:
            part = inverse[:, rows]
            block = np.linalg.inv(part.T @ part - GM[rows] @ G[rows].T)
            best = int(np.argmin(own[rows]))  # the row with the least rounding
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
    """Return the evidence and the scale without each place's readings, both (L, D)."""
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
"""Relative growth of the number of observed places after which R² is computed again."""
AT_LEAST = 5
"""Smallest number of added places after which R² is computed again."""
MANY = 600
"""Number of places above which the required growth exceeds `GROWTH`."""


@dataclass(frozen=True)
class PlacePredictability:
    """R² of `LeaveOneOut.explained`, which is computed again as the number of places grows.

    A computation costs O(L D³) for D places. R² is computed again when D has grown by a
    tenth and by at least five places. The cost per added place is thus O(10 L D²). Above `MANY`
    places, the intervals are longer, and the cost per added place is constant.

    Args:
        share: R² of the last computation; None = unknown.
        places: number D of places at the last computation; 0 = not computed yet.
    """

    share: float | None = None
    places: int = 0

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> PlacePredictability:
        """Return the predictability stored in `record`; without an entry, the initial value."""
        share = record.get("explained")
        return cls(None if share is None else float(share), int(record.get("explained_places", 0)))

    def to_record(self) -> dict[str, Any]:
        """Return the entries for the record of a stage."""
        return {"explained": self.share, "explained_places": self.places}

    @property
    def due(self) -> int:
        """Number of observed places at which R² is computed again."""
        if not self.places:
            return FEWEST
        growth = GROWTH * max(1.0, (self.places / MANY) ** 2)
        return self.places + max(AT_LEAST, round(growth * self.places))

    def after(self, places: int, find: Callable[[], LeaveOneOut | None]) -> PlacePredictability:
        """Return the predictability at `places` observed places; call `find` only when due."""
        if places < self.due:
            return self
        found = find()
        return PlacePredictability(None if found is None else found.explained, places)
