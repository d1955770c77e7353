"""Test functions for optimisation over a finite set, turned so that the maximum is sought.

| name | domain | largest value | where |
| --- | --- | --- | --- |
| `branin` | [-5, 10] × [0, 15] | -0.397887 | (-π, 12.275), (π, 2.275), (3π, 2.475) |
| `cosines` | [0, 1]² | 1.6 | (0.3125, 0.3125) |
| `hartmann6` | [0, 1]⁶ | 3.322368 | (0.201690, 0.150011, 0.476874, 0.275332, 0.311652, 0.657300) |

Branin–Hoo and Hartmann-6 are usually minimised; here they have the other sign. [Branin1972;
Dixon1978; Anderson2000; Kathuria2016, Sec. 5]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gp_active_sensing.types import FloatArray

__all__ = ["FUNCTIONS", "TestFunction", "branin", "cosines", "hartmann6"]


@dataclass(frozen=True)
class TestFunction:
    """A function with its domain and what is known of its maximum.

    Args:
        value: (m, d) points -> (m,) values.
        low: (d,) lower corner of the domain.
        high: (d,) upper corner.
        maximum: largest value within the domain.
        at: points where it is taken, each (d,).
    """

    __test__ = False  # no test case, whatever pytest makes of the name

    value: Callable[[FloatArray], FloatArray]
    low: tuple[float, ...]
    high: tuple[float, ...]
    maximum: float
    at: tuple[tuple[float, ...], ...]

    @property
    def dimensions(self) -> int:
        """Number of variables d."""
        return len(self.low)


def branin(points: FloatArray) -> FloatArray:
    """Return ``-[(y - 5.1 x²/(4π²) + 5x/π - 6)² + 10 (1 - 1/(8π)) cos x + 10]`` of (m, 2) points.

    [Branin1972; Dixon1978]
    """
    x, y = points[:, 0], points[:, 1]
    bowl = np.square(y - 5.1 / (4.0 * np.pi**2) * np.square(x) + 5.0 / np.pi * x - 6.0)
    return np.asarray(-(bowl + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x) + 10.0))


def cosines(points: FloatArray) -> FloatArray:
    """Return ``1 - Σ_i [u_i² - 0.3 cos(3π u_i)]`` with ``u_i = 1.6 x_i - 0.5`` of (m, 2) points.

    [Anderson2000]
    """
    u = 1.6 * points - 0.5
    return np.asarray(1.0 - (np.square(u) - 0.3 * np.cos(3.0 * np.pi * u)).sum(axis=1))


_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_RATES = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_CENTRES = 1e-4 * np.array(
    [
        [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
        [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
        [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
        [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
    ]
)


def hartmann6(points: FloatArray) -> FloatArray:
    """Return ``Σ_i α_i exp(-Σ_j A_ij (x_j - P_ij)²)`` of (m, 6) points. [Dixon1978]."""
    apart = np.square(points[:, None, :] - _CENTRES)
    return np.asarray(np.exp(-(apart * _RATES).sum(axis=2)) @ _WEIGHTS)


FUNCTIONS: dict[str, TestFunction] = {
    "branin": TestFunction(
        branin,
        (-5.0, 0.0),
        (10.0, 15.0),
        -0.39788735772973816,
        ((-np.pi, 12.275), (np.pi, 2.275), (3.0 * np.pi, 2.475)),
    ),
    "cosines": TestFunction(cosines, (0.0, 0.0), (1.0, 1.0), 1.6, ((0.3125, 0.3125),)),
    "hartmann6": TestFunction(
        hartmann6,
        (0.0,) * 6,
        (1.0,) * 6,
        3.3223680114155147,
        ((0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730054),),
    ),
}
"""Name -> function, as in the table above."""
