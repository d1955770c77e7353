"""Data of the experiments with a belief over kernels: two true kernels, two measured sets."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from network_data import Network, rows_of, san_jose

from gp_active_sensing.kernels.composite import Composite
from gp_active_sensing.kernels.grammar import parse
from gp_active_sensing.learning.data.dataset import Dataset
from gp_active_sensing.topology import Roads

KEY = 0x7B5
DOMAIN, FIRST, MORE = 10.0, 256, 1000
"""Of the synthetic sets: inputs in ±10; points drawn, and points whose predictive mean is taken."""
SHARE = 0.75
"""Of the squared distances on the road network that its embedding explains: 6 coordinates."""
NOISE = 0.3
"""Of the drawn log [°C]."""
GROUPS, HELD, PARTS = 3, 0.4, 4
"""Screenings, the share of the units that each leaves out, and the test sets that is cut into."""


@dataclass(frozen=True)
class Truth:
    """A kernel with its hyper-parameters, in the units of the inputs and outputs.

    Args:
        name: in the grammar.
        scales: standard deviation of each additive term.
        leaves: parameters of every leaf, left to right: length-scale, then period or alpha.
    """

    name: str
    scales: tuple[float, ...]
    leaves: tuple[tuple[float, ...], ...]

    def composite(self, dimensions: int = 1) -> Composite:
        return Composite(parse(self.name), dimensions)

    def theta(self, dimensions: int = 1, noise: float = 1e-6) -> np.ndarray:
        """θ (P,), every length and period the same in all dimensions."""
        composite = self.composite(dimensions)
        theta = np.empty(composite.size)
        for i, p in enumerate(composite.parameters):
            if p.kind == "noise":
                theta[i] = math.log(noise)
            elif p.kind == "scale":
                theta[i] = math.log(self.scales[p.leaf])
            else:
                theta[i] = math.log(self.leaves[p.leaf][p.kind != "length_scale"])
        return theta

    def scaled(self, unit: np.ndarray, scale: float, noise: float = 1e-3) -> np.ndarray:
        """θ (P,) where inputs are over `unit` (d,) and outputs over `scale`.

        The length-scale of a PER has no unit: it is on the circle.
        """
        composite = self.composite(len(unit))
        theta = self.theta(len(unit), noise)
        for i, p in enumerate(composite.parameters):
            if p.kind == "scale":
                theta[i] -= math.log(scale)
            elif p.kind == "period" or (
                p.kind == "length_scale" and composite.leaves[p.leaf] != "PER"
            ):
                theta[i] -= math.log(unit[p.dimension])
        return theta

    def covariance(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        d = A.shape[1]
        return self.composite(d).covariance(self.theta(d), A, B)


TRUTHS = (
    Truth("PER×LIN×RQ", (0.01,), ((1.0, 2.0 * math.pi), (3.0,), (8.0, 1.0))),
    Truth("(PER+RQ)×LIN", (0.1, 0.1), ((2.0, 2.0 * math.pi), (3.0, 1.0), (5.0,))),
)
"""[Teng2020, App. E.1]; in the product the three standard deviations are one."""


def drawn(covariance: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A draw of N(0, covariance), and the covariance's inverse times it."""
    jitter = 1e-10 * float(covariance.diagonal().mean())
    root = np.linalg.cholesky(covariance + jitter * np.eye(len(covariance)))
    white = rng.standard_normal(len(covariance))
    from scipy.linalg import solve_triangular

    return root @ white, solve_triangular(root.T, white, lower=False)


def synthetic(truth: Truth, seed: int, more: int = MORE) -> Dataset:
    """[Teng2020, Sec. 6.1]: 256 values from the full process, the predictive mean at 1000 more."""
    rng = np.random.default_rng([KEY, TRUTHS.index(truth), seed])
    A = rng.uniform(-DOMAIN, DOMAIN, (FIRST, 1))
    _, weights = drawn(truth.covariance(A, A), rng)
    X = rng.uniform(-DOMAIN, DOMAIN, (more, 1))
    return Dataset(X, truth.covariance(X, A) @ weights, ("x",), "y", f"{truth.name}, seed {seed}")


@dataclass(frozen=True)
class Measured:
    """Rows and the units that are left out together: readings, or sensors."""

    rows: Dataset
    units: np.ndarray
    unit: str
    what: str


def intel(folder: Path) -> Measured:
    """Temperatures of the Intel lab [°C] at x, y [m] and time [h]: 143 half-hours × 50 motes."""
    at = {
        f"m{int(row['mote']):02d}": (float(row["x_m"]), float(row["y_m"]))
        for row in rows_of(folder / "intel" / "mote_locs_54.csv")
    }
    with (folder / "intel" / "intel50_temp_C_30min_mar01_03.csv").open(encoding="utf-8") as lines:
        (_, *names), *table = list(csv.reader(lines))
    first = datetime.fromisoformat(table[0][0])
    hours = [(datetime.fromisoformat(line[0]) - first).total_seconds() / 3600.0 for line in table]
    X = [(*at[name], hour) for hour in hours for name in names]
    y = [float(v) for line in table for v in line[1:]]
    rows = Dataset(
        np.array(X), np.array(y), ("x", "y", "hours"), "temp", "Intel lab, 1-3 March 2004"
    )
    return Measured(rows, np.arange(len(y)), "°C", "readings")


def san_jose_roads(network: Network) -> Roads:
    """The freeways with the coordinates of the embedding of their network."""
    return Roads(network.road_map, features=("relational",), share=SHARE)


def speeds(folder: Path) -> Measured:
    """Speeds in San Jose [mph] at the network's embedding: 13 Mondays × 325 sensors."""
    network = san_jose(folder)
    roads = san_jose_roads(network)
    X = np.tile(roads.features[network.places], (len(network.values), 1))
    units = np.tile(np.arange(len(network.places)), len(network.values))
    rows = Dataset(X, network.values.ravel(), roads.feature_names, "speed", "San Jose, 13 Mondays")
    return Measured(rows, units, "mph", "sensors")


def some(rows: Dataset, index: np.ndarray) -> Dataset:
    return Dataset(
        rows.inputs[index], rows.outputs[index], rows.input_names, rows.output_name, rows.source
    )


def screening_rows(data: Measured, group: int) -> np.ndarray:
    """Rows that none of the group's tests holds, in a random order."""
    left = np.concatenate(_parts(data, group))
    return _shuffled(np.flatnonzero(~np.isin(data.units, left)), group)


def refit_rows(data: Measured, run: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from, in a random order, and rows to be predicted.

    Run r belongs to screening r mod 3, which has not seen what is to be predicted.
    """
    test = np.isin(data.units, _parts(data, run % GROUPS)[run // GROUPS])
    return _shuffled(np.flatnonzero(~test), GROUPS + run), np.flatnonzero(test)


def _parts(data: Measured, group: int) -> Sequence[np.ndarray]:
    order = np.random.default_rng([KEY, group]).permutation(np.unique(data.units))
    return np.array_split(order[: round(HELD * len(order))], PARTS)


def _shuffled(index: np.ndarray, number: int) -> np.ndarray:
    return np.random.default_rng([KEY, 1, number]).permutation(index)


def big_pieces(
    count: int, seed: int = 0, piece: int = 50_000, draws: int = 0
) -> Iterator[np.ndarray]:
    """Yield rows (m, 4) x, y [m], hours and temp [°C] of a log of `count` rows over 30 days.

    Random Fourier features draw from SE(x, y) + PER(24 h) × SE(x, y) + SE(hours); the noise has
    0.3 °C. The field is keyed by the seed, places and noise by `draws` as well.
    """
    rng = np.random.default_rng([KEY, 2, seed])
    days, size, waves = 30.0, 40.0, 200
    at_place = rng.standard_normal((3, waves, 2)) / 12.0
    phase = rng.uniform(0.0, 2.0 * math.pi, (3, waves))
    in_time = rng.standard_normal(waves) / 18.0
    weight = rng.standard_normal((4, waves)) * math.sqrt(2.0 / waves)
    rng = np.random.default_rng([KEY, 6, seed, draws])
    for first in range(0, count, piece):
        n = min(piece, count - first)
        place = rng.uniform(0.0, size, (n, 2))
        hours = 24.0 * days * (first + np.arange(n)) / count
        # One field that stays, and two that come and go with the day.
        fields = [np.cos(place @ at_place[k].T + phase[k]) @ weight[k] for k in range(3)]
        angle = 2.0 * math.pi * hours / 24.0
        slow = np.cos(np.outer(hours, in_time) + phase[0]) @ weight[3]
        y = 18.0 + fields[0] + 1.5 * (fields[1] * np.cos(angle) + fields[2] * np.sin(angle))
        yield np.column_stack([place, hours, y + slow + NOISE * rng.standard_normal(n)])


def big_log(path: Path, count: int, seed: int = 0) -> None:
    """Write such a log, piece by piece."""
    with path.open("w", encoding="utf-8", newline="") as out:
        out.write("x,y,hours,temp\n")
        for table in big_pieces(count, seed):
            np.savetxt(out, table, fmt="%.4f", delimiter=",")


def big_rows(count: int, seed: int = 0) -> Dataset:
    table = np.vstack(list(big_pieces(count, seed)))
    return Dataset(table[:, :3], table[:, 3], ("x", "y", "hours"), "temp", "a drawn log")
