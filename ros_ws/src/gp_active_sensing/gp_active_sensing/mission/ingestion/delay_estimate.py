r"""Estimate a sensor's delay: the delay with which the readings fit a field best.

If a sensor is slow or stamps its values late, each value is assigned to a later position of the
probe. On a straight way at constant speed the delay only shifts the field. Where the probe turns,
stops, changes its speed or returns, readings of one point disagree. At a candidate delay
:math:`\tau`, a reading with the stamp t gets the probe's position x at the time t − :math:`\tau`. A
Gaussian process gives the likelihood of the readings z. The likelihood is integrated over c, the
field's mean and scale. It is averaged over pairs :math:`\lambda` of a length-scale and a noise
variance:

.. math:: p(z | \tau) = \sum_\lambda p(\lambda) \int p(z | x(t - \tau), \lambda, c) p(c)\,dc

Readings are evaluated in blocks, so that the cost stays small and constant. For each block, the
likelihood of its readings is computed at each candidate delay. Wrong positions cause an error in
the best delay of a block. A GPS error lasts for many readings, so that this error is visible only
in the scatter between blocks. In the model, the delay t of a block b is therefore normal about the
common delay :math:`\tau`. Its standard deviation :math:`s` is unknown. The likelihood of
:math:`\tau` is averaged over the delays of the blocks and over :math:`s`:

.. math:: p(\tau) \propto \sum_s p(s) \prod_b \int p(z_b | t) N(t; \tau, s^2) dt

A single block has little weight even with a narrow likelihood, since its error may be large. The
weight of several blocks increases with their agreement.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.types import FloatArray

CANDIDATES: FloatArray = np.linspace(-1.0, 5.0, 25)
"""Candidate delays for a block of readings [s]."""
NONE = int(np.argmin(np.abs(CANDIDATES)))
"""Index in `CANDIDATES` of the delay 0."""
STEP = 0.05
"""Step between the delays at which the log-likelihood is interpolated [s]."""
SCATTERS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Candidate standard deviations of the blocks' delays about the common delay [s]."""
_PARTS = round(float(CANDIDATES[1] - CANDIDATES[0]) / STEP)
_FINE: FloatArray = np.linspace(CANDIDATES[0], CANDIDATES[-1], _PARTS * (len(CANDIDATES) - 1) + 1)


def log_likelihood(profile: FloatArray) -> FloatArray:
    """Return the log-likelihood (S, F) [nat] of each common delay, given the readings of one block.

    The S rows belong to the `SCATTERS`, the F columns to common delays at intervals of `STEP`.
    `profile` (K,) is the log-likelihood of the block at each of the K `CANDIDATES` [nat].
    """
    fine = _between(profile)
    fine -= fine.max()
    apart = _FINE[:, None] - _FINE
    likelihoods = []
    for scatter in SCATTERS:
        normal = -0.5 * (apart / scatter) ** 2 + math.log(STEP / (scatter * math.sqrt(math.tau)))
        likelihoods.append(_log_sum(fine[:, None] + normal))
    return np.array(likelihoods)


def common_delay(likelihoods: Iterable[FloatArray]) -> tuple[float, float, float]:
    """Return the common delay [s], its standard error [s] and a log-likelihood ratio [nat].

    The ratio compares the likelihood of the common delay with the likelihood of delay 0.
    `likelihoods` has the result of `log_likelihood` for each block.
    """
    total = _log_sum(np.sum(list(likelihoods), axis=0)) - math.log(len(SCATTERS))
    best = int(np.argmax(total))
    weights = np.exp(total - total[best])
    weights /= weights.sum()
    mean = float(weights @ _FINE)
    error = math.sqrt(float(weights @ (_FINE - mean) ** 2))
    evidence = float(total[best] - total[_PARTS * NONE])
    return mean, error, evidence


def _between(profile: FloatArray) -> FloatArray:
    """Interpolate a log-likelihood (K,), known at the `CANDIDATES`, by parabolas at `_FINE`."""
    nearest = np.round(np.arange(len(_FINE)) / _PARTS).astype(int)
    middle = np.clip(nearest, 1, len(CANDIDATES) - 2)
    before, at, after = profile[middle - 1], profile[middle], profile[middle + 1]
    off = np.arange(len(_FINE)) / _PARTS - middle
    return np.asarray(at + 0.5 * (after - before) * off + 0.5 * (before - 2 * at + after) * off**2)


def _log_sum(logs: FloatArray) -> FloatArray:
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))


FULL = 50
"""Number of readings in a block."""
AHEAD = 30.0
"""Largest time by which a reading's stamp may be after the newest pose [s]."""
APART = 0.5
"""Smallest time between two readings of a block [s]."""
STANDING = 3.0
"""Readings are ignored after the probe has been at rest for this time [s]."""
MOVING = 0.05
"""The probe counts as moving if two readings are farther apart than this [m]."""
_LENGTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
"""Candidate length-scales, as fractions of the extent of a block."""
_NOISES = (0.001, 0.01, 0.1, 1.0)
"""Candidate noise variances, as fractions of the field's variance."""
KEPT = 40
"""At most this number of blocks is used, the newest ones, since a delay may change."""
BLOCKS = 3
"""A delay is estimated from at least this number of blocks."""
ENOUGH = BLOCKS * FULL
EVIDENCE = 8.0
"""A delay is reported if its log-likelihood ratio to the delay 0 is at least this [nat]."""
ERRORS = 3.0
"""A delay is reported if it is at least this multiple of its standard error."""
LEAST = 0.2
"""A delay is reported if its absolute value is at least this [s]."""


@dataclass(frozen=True)
class DelayEstimate:
    """Estimated delay of a sensor.

    Args:
        seconds: delay in addition to the configured `reading.delay` [s].
        error: standard error of the delay, which includes the scatter between blocks [s].
        evidence: log-likelihood ratio of the delay to the delay 0 [nat].
    """

    seconds: float
    error: float
    evidence: float
    samples: int


@dataclass(frozen=True)
class Block:
    """Block of m readings, with their positions for each of K candidate delays.

    Args:
        positions: (K, m, 2) position of the sensor at each reading's stamp minus each delay [m].
        values: (m,) values of the readings.
    """

    positions: FloatArray
    values: FloatArray

    @property
    def reach(self) -> float:
        """Diagonal of the bounding box of all positions [m]."""
        flat = self.positions.reshape(-1, 2)
        return float(np.hypot(*np.ptp(flat, axis=0)))


def _averaged(found: Sequence[float]) -> float:
    top = max(found)
    return top + math.log(sum(math.exp(f - top) for f in found) / len(found))


def _evidence(positions: FloatArray, values: FloatArray, length: float) -> list[float]:
    """Return ``log p(values | positions, length, noise)`` for each of `_NOISES`."""
    from scipy.linalg import cho_factor, cho_solve

    count = len(values)
    z = values - values.mean()
    apart = np.hypot(*(positions[:, None] - positions[None]).transpose(2, 0, 1))
    scaled = (math.sqrt(3.0) / length) * apart
    correlation = (1.0 + scaled) * np.exp(-scaled)
    right = np.column_stack([np.ones(count), z])
    found = []
    for noise in _NOISES:
        K = correlation + noise * np.eye(count)
        factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        solved = cho_solve(factor, right, check_finite=False)
        ones, both, square = solved[:, 0].sum(), solved[:, 1].sum(), z @ solved[:, 1]
        Q = max(float(square - both**2 / ones), 1e-300)
        half = float(np.log(np.diagonal(factor[0])).sum())
        found.append(-half - 0.5 * math.log(ones) - 0.5 * (count - 1) * math.log(Q))
    return found


class DelayEvidence:
    """Likelihoods of a sensor's delay from blocks of readings; `work` computes one small step."""

    def __init__(self) -> None:
        self.samples = 0
        self._likelihoods: deque[FloatArray] = deque(maxlen=KEPT)
        self._block: Block | None = None
        self._found: list[float] = []
        self._parts: list[float] = []

    @property
    def busy(self) -> bool:
        """True while a block is processed."""
        return self._block is not None

    def begin(self, block: Block) -> None:
        """Start to process a block."""
        self._block, self._found, self._parts = block, [], []

    def work(self) -> bool:
        """Evaluate one length-scale at one delay; return whether the block is complete."""
        block = self._block
        if block is None:
            return False
        positions, reach = block.positions[len(self._found)], block.reach
        part = _LENGTHS[len(self._parts) // len(_NOISES)]
        self._parts += _evidence(positions, block.values, part * reach)
        if len(self._parts) < len(_LENGTHS) * len(_NOISES):
            return False
        self._found.append(_averaged(self._parts))
        self._parts = []
        if len(self._found) < len(CANDIDATES):
            return False
        self._likelihoods.append(log_likelihood(np.array(self._found)))
        self.samples += len(block.values)
        self._block = None
        return True

    def estimate(self) -> DelayEstimate | None:
        """Return the estimated delay; None = the evidence is too small."""
        if len(self._likelihoods) < BLOCKS:
            return None
        seconds, error, evidence = common_delay(self._likelihoods)
        if evidence < EVIDENCE or abs(seconds) < max(LEAST, ERRORS * error):
            return None
        samples = min(self.samples, FULL * len(self._likelihoods))
        return DelayEstimate(seconds, error, evidence, samples)


class DelayMonitor:
    """Estimator of a sensor's delay, which uses a sample of a mission's readings.

    Args:
        position_at: returns the position (x, y) at a stamp [ns]; None = unknown.
    """

    def __init__(self, position_at: Callable[[int], tuple[float, float] | None]) -> None:
        self._position_at = position_at
        self._pending: deque[tuple[int, float]] = deque(maxlen=1000)
        """Stamp and value of the readings that wait for poses."""
        self._ready: deque[Block] = deque(maxlen=4)
        self._positions: list[FloatArray] = []
        self._values: list[float] = []
        self._sampled_ns: int | None = None
        self._newest_ns: int | None = None
        self._moved_ns = 0
        self.evidence = DelayEvidence()
        self.estimate: DelayEstimate | None = None
        self.logged: float | None = None
        """Delay that was logged last [s]; None = no delay has been logged."""

    @property
    def busy(self) -> bool:
        """True while `work` has something to do."""
        return self.evidence.busy or bool(self._ready)

    def read(self, stamp_ns: int, value: float) -> None:
        """Add a reading; a reading stamped far ahead of the poses is ignored."""
        if self._newest_ns is not None and stamp_ns - self._newest_ns > 1e9 * AHEAD:
            return
        newest = self._pending[-1][0] if self._pending else self._sampled_ns
        if newest is None or stamp_ns - newest >= 1e9 * APART or stamp_ns < newest - 1e9 * 60.0:
            self._pending.append((stamp_ns, value))

    def moved(self, newest_ns: int) -> None:
        """Add waiting readings to the block, after all poses up to `newest_ns` [ns] have come."""
        self._newest_ns = newest_ns
        while self._pending and self._pending[0][0] - newest_ns > 1e9 * AHEAD:
            self._pending.popleft()
        while self._pending and self._pending[0][0] - 1e9 * CANDIDATES[0] <= newest_ns:
            self._sample(*self._pending.popleft())

    def work(self) -> bool:
        """Do one small step of the computation; return whether the estimate has changed."""
        if not self.evidence.busy:
            if not self._ready:
                return False
            self.evidence.begin(self._ready.popleft())
        if not self.evidence.work():
            return False
        before, self.estimate = self.estimate, self.evidence.estimate()
        return before != self.estimate

    def clear(self) -> None:
        """Drop all readings and results."""
        self.__init__(self._position_at)  # type: ignore[misc]

    def _sample(self, stamp_ns: int, value: float) -> None:
        self._sampled_ns = stamp_ns
        where = [self._position_at(stamp_ns - round(1e9 * tau)) for tau in CANDIDATES.tolist()]
        known = [position for position in where if position is not None]
        if len(known) < len(where):
            return
        positions = np.array(known)
        if not self._positions or self._has_moved(positions):
            self._moved_ns = stamp_ns
        elif stamp_ns - self._moved_ns > 1e9 * STANDING:
            return
        self._positions.append(positions)
        self._values.append(value)
        if len(self._values) < FULL:
            return
        block = Block(np.array(self._positions).swapaxes(0, 1), np.array(self._values))
        self._positions, self._values = [], []
        if block.reach > 0.0 and float(np.ptp(block.values)) > 0.0:
            self._ready.append(block)

    def _has_moved(self, positions: FloatArray) -> bool:
        return bool(np.hypot(*(positions[NONE] - self._positions[-1][NONE])) > MOVING)
