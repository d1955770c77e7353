"""What a belief over candidates says: mixtures of Gaussians, and the most probable candidate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy.special import ndtr, ndtri

from gp_active_sensing.belief.prior import IDENTITY, Transform
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

WIDEST, FAR = 2.0, 4.0
"""A component with half of the weight has at most `WIDEST` times the variance of its mixture. Of a
normal distribution all but 3 in 100,000 lie within `FAR` deviations."""
_NEGLIGIBLE = 1e-10
"""Weight in all of components that are left out of a distribution function."""
_CLOSE = 1e-9
"""How near to its probability a quantile is found."""
_STEPS = 100
"""Most steps to a quantile: halving alone needs about half of them."""
_ROOT_2PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class Mixture:
    """``Σ_λ w_λ N(mean_λ, variance_λ)`` at each of m places, seen through a monotone transform.

    Args:
        weights: (L,) of the components, the same at every place; they sum to one.
        mean: (L, m) before the transform is undone.
        variance: (L, m) the same, not negative.
        transform: between these and values in the sensor's unit, which all methods use.
    """

    weights: FloatArray
    mean: FloatArray
    variance: FloatArray
    transform: Transform = IDENTITY

    def at(self, places: BoolArray | IntArray) -> Mixture:
        """Return the mixture at some of the places."""
        return replace(self, mean=self.mean[:, places], variance=self.variance[:, places])

    def noisier(self, variance: FloatArray) -> Mixture:
        """Return the mixture with (L, m) or (L, 1) variances on top, before the transform."""
        return replace(self, variance=self.variance + variance)

    def each(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (L, m) of the components in the sensor's unit.

        Through a logarithm a component that is far wider than the mixture, however little its
        weight, has an expectation beyond all others. None has more than `WIDEST` times the
        variance of the mixture, or lies more than `FAR` of its deviations above it.
        """
        if self.transform is IDENTITY:
            return self.mean, self.variance
        centre = self.weights @ self.mean
        variance = self.weights @ (self.variance + (self.mean - centre) ** 2)
        mean = np.minimum(self.mean, centre + FAR * np.sqrt(variance))
        return self.transform.moments(mean, np.minimum(self.variance, WIDEST * variance))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (m,) in the sensor's unit."""
        mean, variance = self.each()
        mixture_mean = self.weights @ mean
        spread = (mean - mixture_mean) ** 2
        return mixture_mean, self.weights @ (variance + spread)

    def below(self, values: FloatArray) -> FloatArray:
        """Return the probability (m,) of less than each of (m,) values, to 1e-10. O(L m)."""
        weights, mean, deviation = self._components()
        with np.errstate(over="ignore"):
            return np.asarray(weights @ ndtr((self.transform.seen(values) - mean) / deviation))

    def quantiles(self, probabilities: FloatArray) -> FloatArray:
        r"""Return (p, m) values below which there are the probabilities (p,).

        Newton's method on :math:`\Phi^{-1}(F(v)) = \Phi^{-1}(p)`, which is linear for a single
        component, between the components' own quantiles; a step that leaves the bracket is
        replaced by its middle. O(L m) a step, mostly four of them.
        """
        parts = self._components()
        found = [_quantile(*parts, float(p)) for p in probabilities]
        return self.transform.inverse(np.array(found).reshape(len(found), self.mean.shape[1]))

    def _components(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        keep = self.weights > _NEGLIGIBLE / len(self.weights)
        weights = self.weights[keep]
        deviation = np.sqrt(np.maximum(self.variance[keep], np.finfo(np.float64).tiny))
        return weights / weights.sum(), self.mean[keep], deviation


def _quantile(
    weights: FloatArray, mean: FloatArray, deviation: FloatArray, probability: float
) -> FloatArray:
    """Return the (m,) quantiles of mixtures of weights (k,), means and deviations (k, m)."""
    goal = float(ndtri(probability))
    own = mean + goal * deviation
    low, high = own.min(axis=0), own.max(axis=0)
    centre = weights @ mean
    value = centre + goal * np.sqrt(weights @ (deviation**2 + (mean - centre) ** 2))
    value = np.clip(value, low, high)
    left = np.arange(value.size)
    for _ in range(_STEPS):
        v, a, b = value[left], low[left], high[left]
        with np.errstate(over="ignore"):
            z = (v - mean) / deviation
            below = weights @ ndtr(z)
            density = weights @ (np.exp(-0.5 * z * z) / deviation) / _ROOT_2PI
        a, b = np.where(below < probability, v, a), np.where(below < probability, b, v)
        score = ndtri(np.clip(below, 1e-300, 1.0 - 1e-16))
        with np.errstate(all="ignore"):
            step = (score - goal) * np.exp(-0.5 * score * score) / _ROOT_2PI / density
        following = v - step
        inside = (following > a) & (following < b)  # false where the density vanishes
        following = np.where(inside, following, 0.5 * (a + b))
        low[left], high[left] = a, b
        on = (np.abs(below - probability) > _CLOSE) & (b - a > 1e-15 * (np.abs(a) + np.abs(b)))
        value[left[on]] = following[on]
        if not on.any():
            break
        if not on.all():
            left, mean, deviation = left[on], mean[:, on], deviation[:, on]
    return value


Key = TypeVar("Key")


@dataclass(frozen=True)
class Probable:
    """The kernel and the length-scale with most weight.

    Args:
        kernel: the kernel whose candidates have most weight; "" where they have no names.
        kernel_weight: of it.
        length_scale: of the candidates with that kernel, the one with most weight.
        weight: of it, with that kernel.
    """

    kernel: str
    kernel_weight: float
    length_scale: tuple[float, ...]
    weight: float


def most_probable(candidates: Iterable[tuple[str, Sequence[float], float]]) -> Probable:
    """Return the most probable kernel, and the most probable length-scale with that kernel.

    Candidates that differ in signal, noise or shares only are added up.
    """
    kernels: dict[str, float] = {}
    scales: dict[tuple[str, tuple[float, ...]], float] = {}
    for kernel, scale, weight in candidates:
        key = kernel, tuple(scale)
        kernels[kernel] = kernels.get(kernel, 0.0) + float(weight)
        scales[key] = scales.get(key, 0.0) + float(weight)
    kernel, kernel_weight = _largest(kernels)
    (_, scale), weight = _largest({key: w for key, w in scales.items() if key[0] == kernel})
    return Probable(kernel, kernel_weight, tuple(scale), weight)


def _largest(weights: dict[Key, float]) -> tuple[Key, float]:
    return max(weights.items(), key=lambda item: item[1])
