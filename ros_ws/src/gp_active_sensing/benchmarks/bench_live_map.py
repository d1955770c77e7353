"""How long a mission takes to go on with a map that has grown: places, belief, first prediction.

``OMP_NUM_THREADS=1 python benchmarks/bench_live_map.py`` prints a table, in seconds of one core: a
map of about so many places grows by a tenth, in a mission with 200 readings whose length-scales
come from the map.

``--cells 4000`` prints instead how long the first map of a mission takes, of so many cells on a
side, where the spacing is stated and where it is not.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.topology import MapConfig
from gp_active_sensing.topology.live import LivePlaces
from gp_active_sensing.topology.occupancy import OccupancyGrid

RESOLUTION = 0.1
PER_PLACE = 10
"""Cells between two places."""


def grid_of(rows: int, columns: int) -> OccupancyGrid:
    """Return a hall with pillars, of so many rows and columns of places."""
    values = np.zeros((rows * PER_PLACE, columns * PER_PLACE), dtype=np.int8)
    values[3::70, 5::50] = 100
    return OccupancyGrid(values, RESOLUTION, (-0.55, -0.55))


def timed(count: int, readings: int, seed: int) -> tuple[float, ...]:
    """Return places before and after, and seconds: places, swap, factors, the next map."""
    side = round(math.sqrt(count))
    config = MapConfig(topic="map", spacing=RESOLUTION * PER_PLACE, inflation=0.2)
    before = LivePlaces.of(config, grid_of(side, side), "map")
    rng = np.random.default_rng(seed)
    belief = belief_on(BeliefConfig(), before.topology, quiet=True)
    for place in rng.permutation(before.topology.n)[:readings].tolist():
        x, y = before.topology.positions[place]
        belief.observe(place, float(np.sin(0.3 * x) + np.cos(0.2 * y) + 0.1 * rng.normal()))
        belief.adapt()
    belief.predict()
    larger = grid_of(side, round(1.1 * side))
    started = time.process_time()
    after = before.on(larger)
    assert after is not None
    fresh = belief_on(BeliefConfig(), after.topology, quiet=True)
    made = time.process_time()
    belief.move_to(fresh)
    moved = time.process_time()
    _ = belief.weights
    factored = time.process_time()
    belief.predict()
    steps = np.diff([started, made, moved, factored, time.process_time()]).tolist()
    return before.topology.n, after.topology.n, *steps


def first_map(cells: int, spacing: float) -> tuple[float, float]:
    """Return the places of a first map, and the seconds that they take; 0 = no spacing stated."""
    side = cells // PER_PLACE
    config = MapConfig(topic="map", spacing=spacing, inflation=0.2)
    # Beside the pillars, which else stand where a coarse lattice has its places.
    grid = OccupancyGrid(grid_of(side, side).values, RESOLUTION, (-0.25, -0.25))
    started = time.process_time()
    found = LivePlaces.of(config, grid, "map")
    return found.topology.n, time.process_time() - started


def print_first(cells: int, repeats: int) -> None:
    """Print how long the first map takes."""
    first_map(500, 0.0)  # what is imported when it is first needed
    print("| cells | spacing | places | first map [s] |")
    print("| --- | --- | --- | --- |")
    for spacing, said in ((cells * RESOLUTION / 20, "stated"), (0.0, "not stated")):
        found = np.median([first_map(cells, spacing) for _ in range(repeats)], axis=0)
        print(f"| {cells} × {cells} | {said} | {found[0]:.0f} | {found[1]:.2f} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--readings", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cells", type=int, help="time the first map, of so many cells a side")
    given = parser.parse_args()
    if given.cells:
        print_first(given.cells, given.repeats)
        return
    print("| places | after | places, prior [s] | swap, locked [s] | factors [s] | next map [s] |")
    print("| --- | --- | --- | --- | --- | --- |")
    for count in given.places:
        found = [timed(count, given.readings, seed) for seed in range(given.repeats)]
        median = np.median(np.array(found), axis=0)
        cells = [f"{median[0]:.0f}", f"{median[1]:.0f}", *(f"{s:.4f}" for s in median[2:])]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
