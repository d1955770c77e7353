"""Expected disagreement of candidates λ after some readings (docs/theory.md, "Map error")."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gp_active_sensing.types import FloatArray, IntArray

__all__ = ["Disagreement", "disagreement"]

_KEPT_PRODUCTS = 1_500_000
"""Numbers up to which all products of covariances are kept."""
_CHUNK = 1_000_000
"""Numbers in the largest temporary array."""
_LEAST_NOISE = 1e-6
"""Noise below this share of the largest variance counts as that much where a matrix is inverted:
before the first reading a vague mean makes all of them large and alike."""
_LEAST_EIGENVALUE = 1e-13
"""Smallest eigenvalue of a precision, relative to its largest, that is more than rounding."""


class Disagreement:
    r"""How far apart the maps of candidates λ are expected to be after readings at a set A.

    Under λ the map after readings z at A is :math:`h_\lambda(z) = K_\lambda (1, z)`. Readings are
    taken to have the second moments :math:`M_A = (\sum_\lambda b_0(\lambda) M_\lambda^{-1})^{-1}`
    of (1, z), an average of those under each λ, and

    .. math:: D_A(b) = \operatorname{Var}_b \big( K_\lambda M_A^{1/2} \big)
        = \tfrac12 \sum_{\lambda \lambda'} b(\lambda) b(\lambda') \,
          \| (K_\lambda - K_{\lambda'}) M_A^{1/2} \|_w^2

    is concave in b, never negative, and zero where b is certain. For A = ∅ it is the weighted
    variance of the means over the belief.

    Args:
        weights: (L,) belief b_0 at the root.
        mean: (L, m) means of the places that may be read.
        covariance: (L, m, m) of the latent field there.
        noise: (L,) noise variances.
        map_mean: (L, P) means of the places that make up the map, times the root of their weights.
        columns: (L, P, m) covariances of these with the places that may be read, times the same.
    """

    def __init__(
        self,
        weights: FloatArray,
        mean: FloatArray,
        covariance: FloatArray,
        noise: FloatArray,
        map_mean: FloatArray,
        columns: FloatArray,
    ) -> None:
        self.weights = weights
        self._apart = mean - weights @ mean
        self._covariance = covariance
        largest = np.diagonal(covariance, axis1=1, axis2=2).max(axis=1, initial=0.0)
        self._noise = np.maximum(noise, _LEAST_NOISE * largest)
        beta = map_mean - weights @ map_mean
        self._of_means = beta @ beta.T  # (L, L)
        L, P, m = columns.shape
        # What is seen of the columns from each mean, (m, L, L): place, of the column, of the mean.
        flat = np.ascontiguousarray(np.moveaxis(columns, 0, 2))  # (P, m, L)
        self._flat = flat.reshape(P, m * L)
        self._beside = (self._flat.T @ beta.T).reshape(m, L, L)
        self._products: FloatArray | None = None
        if (L * m) ** 2 <= _KEPT_PRODUCTS:
            self._products = (self._flat.T @ self._flat).reshape(m, L, m, L)
        self.nothing = _halved(self._of_means)
        """(L, L) of no reading at all."""

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        return self._flat.nbytes + (0 if self._products is None else self._products.nbytes)

    def after(self, sets: Iterable[tuple[int, ...]]) -> FloatArray:
        """Return (n, L, L) h with D_A(b) = bᵀ h b for n sets of places, by their numbers."""
        given = list(sets)
        L = len(self.weights)
        out = np.empty((len(given), L, L))
        sizes = np.array([len(s) for s in given], dtype=np.int64)
        for k in np.unique(sizes).tolist():
            which = np.flatnonzero(sizes == k)
            if k == 0:
                out[which] = self.nothing
                continue
            rows = np.array([given[i] for i in which], dtype=np.int64)
            each = (L * (k + 1)) ** 2
            if self._products is None:
                each = max(each, L * k * len(self._flat))
            step = max(1, _CHUNK // each)
            for start in range(0, len(rows), step):
                part = slice(start, start + step)
                out[which[part]] = self._of_sets(rows[part])
        return out

    def _of_sets(self, sets: IntArray) -> FloatArray:
        """(n, L, L) for sets (n, k) of one size."""
        n, k = sets.shape
        L = len(self.weights)
        inner = self._inner(sets)  # (n, L, k + 1, L, k + 1)
        block = np.moveaxis(self._covariance[:, sets[:, :, None], sets[:, None, :]], 0, 1).copy()
        block[:, :, np.arange(k), np.arange(k)] += self._noise[:, None]
        inverse = np.linalg.inv(block)  # (n, L, k, k)
        apart = np.moveaxis(self._apart[:, sets], 0, 1)  # (n, L, k)
        pulled = (inverse @ apart[..., None])[..., 0]
        # The inverse of the second moments of (1, z) about the mixture's mean.
        precision = np.empty((n, L, k + 1, k + 1))
        precision[..., 0, 0] = 1.0 + (pulled * apart).sum(axis=-1)
        precision[..., 0, 1:] = precision[..., 1:, 0] = -pulled
        precision[..., 1:, 1:] = inverse
        # Multiplied from the right by a root of the inverse of the mean precision.
        mean = np.tensordot(precision, self.weights, axes=(1, 0))
        root = _inverse_root(mean)
        answer = np.zeros_like(precision)
        answer[..., 0, 0] = 1.0
        answer[..., 1:, :] = precision[..., 1:, :]
        answer = answer @ root[:, None]  # (n, L, k + 1, k + 1)
        half = np.swapaxes(answer, 2, 3) @ inner.reshape(n, L, k + 1, L * (k + 1))
        gram = np.einsum(
            "nljmi,nmij->nlm", half.reshape(n, L, k + 1, L, k + 1), answer, optimize=True
        )
        return _halved(gram)

    def _inner(self, sets: IntArray) -> FloatArray:
        """Inner products over the map of means and columns, (n, L, k + 1, L, k + 1)."""
        n, k = sets.shape
        L = len(self.weights)
        inner = np.empty((n, L, k + 1, L, k + 1))
        inner[:, :, 0, :, 0] = self._of_means
        beside = self._beside[sets]  # (n, k, L, L): of the column, of the mean
        inner[:, :, 1:, :, 0] = np.swapaxes(beside, 1, 2)
        inner[:, :, 0, :, 1:] = np.transpose(beside, (0, 3, 2, 1))
        if self._products is not None:
            found = self._products[sets[:, :, None], :, sets[:, None, :], :]  # (n, k, k, L, L)
            inner[:, :, 1:, :, 1:] = np.transpose(found, (0, 3, 1, 4, 2))
        else:
            columns = self._flat.reshape(len(self._flat), -1, L)[:, sets]  # (P, n, k, L)
            columns = np.moveaxis(columns, 0, 1).reshape(n, len(self._flat), k * L)
            found = (np.swapaxes(columns, 1, 2) @ columns).reshape(n, k, L, k, L)
            inner[:, :, 1:, :, 1:] = np.transpose(found, (0, 2, 1, 4, 3))
        return inner


def _inverse_root(precision: FloatArray) -> FloatArray:
    """Return R, (n, k, k), with ``R Rᵀ`` the inverse."""
    precision = 0.5 * (precision + np.swapaxes(precision, 1, 2))
    try:
        return np.swapaxes(np.linalg.inv(np.linalg.cholesky(precision)), 1, 2)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(precision)
        least = _LEAST_EIGENVALUE * values[:, -1:]
        return np.asarray(vectors / np.sqrt(np.maximum(values, least))[:, None, :])


def disagreement(halved: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``bᵀ h b``, (…, S), for h (…, L, L) and beliefs (…, S, L)."""
    return np.asarray(((weights @ halved) * weights).sum(axis=-1))


def _halved(gram: FloatArray) -> FloatArray:
    """Return half the squared distances of vectors with these inner products, (…, L, L)."""
    square = np.diagonal(gram, axis1=-2, axis2=-1)
    apart = 0.5 * (square[..., :, None] + square[..., None, :])
    apart -= 0.5 * (gram + np.swapaxes(gram, -2, -1))
    return np.asarray(np.maximum(apart, 0.0))
