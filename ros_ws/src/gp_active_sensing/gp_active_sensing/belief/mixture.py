"""Predictions of a belief: mixtures of Gaussians, and the most probable kernel."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from gp_active_sensing.belief.prior import IDENTITY, Transform
from gp_active_sensing.types import BoolArray, FloatArray, IntArray

WIDEST, FAR = 2.0, 4.0
"""Limits on the components of a mixture whose transform is a logarithm. `WIDEST` limits the
variance, relative to the mixture's variance. `FAR` limits the excess of the mean over the mixture's
mean [mixture's standard deviations]."""
_NEGLIGIBLE = 1e-10
"""Largest total weight of the components that are left out of a distribution function."""
_CLOSE = 1e-9
"""Largest error of a quantile, measured as a probability."""
_STEPS = 100
"""Largest number of iterations for a quantile; bisection alone needs about 50."""
_ROOT_2PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class Mixture:
    """Mixture ``Σ_λ w_λ N(mean_λ, variance_λ)`` at each of m places, under a monotone transform.

    Args:
        weights: (L,) weights of the components at every place; they sum to one.
        mean: (L, m) means of the components, after the transform.
        variance: (L, m) variances of the components, after the transform; not negative.
        transform: transform from the sensor's unit; moments and quantiles are in that unit.
    """

    weights: FloatArray
    mean: FloatArray
    variance: FloatArray
    transform: Transform = IDENTITY

    def at(self, places: BoolArray | IntArray) -> Mixture:
        """Return the mixture at some of the places."""
        return replace(self, mean=self.mean[:, places], variance=self.variance[:, places])

    def noisier(self, variance: FloatArray) -> Mixture:
        """Return the mixture with `variance` (L, m) or (L, 1) added, in transformed units."""
        return replace(self, variance=self.variance + variance)

    def each(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance (L, m) of the components in the sensor's unit.

        After a logarithm, a wide component with little weight would dominate the expectation.
        `WIDEST` and `FAR` therefore limit the variances and the means.
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
        """Return the (m,) probability that the field at each place is below `values`; O(L m)."""
        weights, mean, deviation = self._components()
        with np.errstate(over="ignore"):
            return np.asarray(weights @ ndtr((self.transform.seen(values) - mean) / deviation))

    def quantiles(self, probabilities: FloatArray) -> FloatArray:
        r"""Return the (p, m) quantiles for the probabilities (p,).

        Newton's method solves :math:`\Phi^{-1}(F(v)) = \Phi^{-1}(p)`, bracketed by the quantiles of
        the components. A step that leaves the bracket is replaced by a bisection. Each step costs
        O(L m); most quantiles need four steps.
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
    """Return (m,) quantiles of m mixtures: weights (k,), means and standard deviations (k, m)."""
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


@dataclass(frozen=True)
class MostProbableKernel:
    """Kernel with the largest weight, and its length-scale with the largest weight.

    Args:
        kernel: name of the kernel; "" if the candidates λ have no names.
        kernel_weight: total weight of the candidates with this kernel.
        length_scale: most probable length-scale of the candidates with this kernel.
        weight: total weight of the candidates with this kernel and length-scale.
    """

    kernel: str
    kernel_weight: float
    length_scale: tuple[float, ...]
    weight: float


def rounded_scale(scale: Sequence[float]) -> tuple[float, ...]:
    """Round a length-scale to nine significant digits.

    Grids can contain a length-scale twice, with different rounding errors.
    """
    return tuple(float(f"{ell:.9g}") for ell in scale)


def sum_by_scale(
    candidates: Iterable[tuple[str, Sequence[float], float]],
) -> dict[tuple[str, tuple[float, ...]], float]:
    """Sum the weights of candidates λ with the same kernel and the same `rounded_scale`.

    The length-scale in a key is that of the first of these candidates, not rounded.
    """
    firsts: dict[tuple[str, tuple[float, ...]], tuple[str, tuple[float, ...]]] = {}
    total: dict[tuple[str, tuple[float, ...]], float] = defaultdict(float)
    for kernel, scale, weight in candidates:
        first = firsts.setdefault((kernel, rounded_scale(scale)), (kernel, tuple(scale)))
        total[first] += float(weight)
    return dict(total)


def most_probable(candidates: Iterable[tuple[str, Sequence[float], float]]) -> MostProbableKernel:
    """Return the most probable kernel, and the most probable length-scale with that kernel."""
    candidates = list(candidates)
    kernels: dict[str, float] = defaultdict(float)
    for kernel, _, weight in candidates:
        kernels[kernel] += float(weight)
    scales = sum_by_scale(candidates)
    best = max(kernels, key=kernels.__getitem__)
    pair = max((pair for pair in scales if pair[0] == best), key=scales.__getitem__)
    return MostProbableKernel(best, kernels[best], pair[1], scales[pair])
