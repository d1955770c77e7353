from __future__ import annotations

import numpy as np

from gp_active_sensing.topology import GraphTopology, Move


def directed_graph(
    rng: np.random.Generator, n: int, most: int, side: float = 1000.0, *, reach: float = 0.0
) -> GraphTopology:
    """Return places in a square [m] with one-ways, dead ends and parts of their own."""
    metres = rng.uniform(1, 100, n)
    seconds = metres / rng.uniform(1, 20, n)
    sizes = (min(n, int(rng.integers(0, most + 1))) for _ in range(n))
    ends = [rng.choice(n, size=size, replace=False).tolist() for size in sizes]
    moves = [[Move(b, float(metres[b]), float(seconds[b])) for b in out] for out in ends]
    stay, names = bool(rng.integers(2)), [str(i) for i in range(n)]
    positions = rng.uniform(0, side, (n, 2))
    return GraphTopology("random", "map", names, positions, moves, stay=stay, reach=reach)
