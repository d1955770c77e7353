"""Map of a run for export: estimate, standard deviation and readings of each place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from gp_active_sensing.belief import Belief
from gp_active_sensing.belief.mixture import Mixture
from gp_active_sensing.errors import RunError
from gp_active_sensing.export.fine import fine_points
from gp_active_sensing.export.lattice import layer_at
from gp_active_sensing.topology import FreeTopology, Topology
from gp_active_sensing.topology.projection import geographic_of, local_system
from gp_active_sensing.types import FloatArray, IntArray


class Limit(NamedTuple):
    """Limit of the field; the map shows the probability of values beyond it.

    Args:
        value: limit in the sensor's unit.
        above: True = values above the limit are beyond it; False = values below the limit.
    """

    value: float
    above: bool = True

    @property
    def name(self) -> str:
        """Name for columns and files, such as ``above_10``."""
        return f"{'above' if self.above else 'below'}_{self.value:.12g}"


def _beyond(found: Mixture, limits: Sequence[Limit]) -> Iterator[FloatArray]:
    for limit in limits:
        below = found.below(np.full(found.mean.shape[1], limit.value))
        yield np.maximum(1.0 - below, 0.0) if limit.above else below


@dataclass(frozen=True)
class FieldMap:
    """Estimate, standard deviation and readings at each place, from a belief.

    Args:
        topology: places of the map.
        mean: (n,) estimate of the noise-free field, in the sensor's unit.
        std: (n,) standard deviation of the estimate, in the sensor's unit.
        readings: (n,) number of readings of each place. If the map has more points than the mission
            had places, a reading belongs to the point nearest to its place.
        values: (n,) average of these readings; NaN = no reading.
        unit: unit of the field; "" = unknown.
        quantity: name of the measured quantity.
        title: title of the run, for headers.
        probabilities: (n,) probabilities that the noise-free field is beyond a limit; the key is
            the name of the limit, such as ``above_10``.
        further: maps of further quantities over the same places, by name.
    """

    topology: Topology
    mean: FloatArray
    std: FloatArray
    readings: IntArray
    values: FloatArray
    unit: str = ""
    quantity: str = "value"
    title: str = ""
    probabilities: Mapping[str, FloatArray] = field(default_factory=dict)
    further: Mapping[str, FieldMap] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        topology: Topology,
        belief: Belief,
        *,
        unit: str = "",
        quantity: str = "value",
        title: str = "",
        limits: Sequence[Limit] = (),
        spacing: float | None = None,
    ) -> FieldMap:
        """Return the map of a belief with at least one reading.

        The map has the probabilities of values beyond `limits`. With a `spacing` [m], the points of
        `fine.fine_points` replace the places.

        Raises:
            RunError: there is no reading, or no map with this spacing.
        """
        observed = np.flatnonzero(belief.observed)
        if not len(observed):
            msg = (
                f"{title or topology.name}: no place has a reading; expected one at least, since a "
                "map without readings says only what was believed before"
            )
            raise RunError(msg)
        fine = None if spacing is None else fine_points(topology, spacing)
        parts, readings = iter([belief.mixture()]), np.asarray(belief.readings)
        seen = belief.transform.inverse(belief.weights @ belief.averages(observed))
        values = np.full(topology.n, np.nan)
        values[observed] = seen
        if fine is not None:
            _, at = cKDTree(fine.topology.positions).query(topology.positions[observed])
            topology, counts = fine.topology, readings[observed]
            parts = (each for _, each in belief.mixtures_at(topology.points, fine.within))
            readings = np.bincount(at, counts, topology.n).astype(np.int64)
            totals = np.bincount(at, counts * seen, topology.n)
            values = totals / np.where(readings, readings, np.nan)
        blocks = [np.stack([*each.moments(), *_beyond(each, limits)]) for each in parts]
        mean, variance, *beyond = np.concatenate(blocks, axis=1)
        return cls(
            topology,
            mean,
            np.sqrt(np.maximum(variance, 0.0)),
            readings,
            values,
            unit,
            quantity,
            title,
            {limit.name: values for limit, values in zip(limits, beyond, strict=True)},
        )

    def at_height(self, height: float) -> FieldMap:
        """Return the layer near a height [m] as a map. Raises RunError without such a layer."""
        layer = layer_at(self.topology, height)
        whole, which = self.topology, layer.places
        names = [whole.names[place] for place in which.tolist()]
        topology = FreeTopology(
            whole.name,
            whole.frame,
            names,
            whole.positions[which],
            heights=np.full(len(which), layer.height),
        ).located(whole.datum)
        topology.weights = whole.weights[which]
        return replace(
            self,
            topology=topology,
            mean=self.mean[which],
            std=self.std[which],
            readings=self.readings[which],
            values=self.values[which],
            probabilities={name: p[which] for name, p in self.probabilities.items()},
            title=f"{self.title or whole.name}, z {layer.height:g} m",
            further={name: each.at_height(height) for name, each in self.further.items()},
        )

    @property
    def quantities(self) -> tuple[tuple[str, FloatArray], ...]:
        """Mean, standard deviation and probabilities (n,), by name."""
        return ("mean", self.mean), ("std", self.std), *self.probabilities.items()

    @property
    def label(self) -> str:
        """Name of the quantity with its unit."""
        return f"{self.quantity} [{self.unit}]" if self.unit else self.quantity

    def geographic(self, points: FloatArray) -> FloatArray:
        """Return the (m, 2) longitude and latitude [degree] of points (m, 2) [m].

        Raises:
            ValueError: the map has no datum.
            MissingDependencyError: pyproj is not installed.
        """
        if self.topology.datum is None:
            msg = f"map {self.topology.name!r} has no datum"
            raise ValueError(msg)
        pairs = [(x, y) for x, y in points.tolist()]
        system = local_system(self.topology.datum)
        return geographic_of(pairs, system, where=f"map {self.topology.name!r}")
