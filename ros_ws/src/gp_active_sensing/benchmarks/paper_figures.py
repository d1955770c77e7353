"""Draw Figures 1b and 1c of the BAL paper; 1a and 2 are pictures of `experiment bal_1d`.

    python benchmarks/paper_figures.py [--out DIR] [--paths N] [--decisions N]

Writes ``bal_1d_paths.png``, cost and bounds of the sixth decision against simulated paths, and
prints what it shows. A simulated path is one pass of the main loop: in the published order of
search from the root to a leaf and back; the gap-directed search expands several states in one.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_active_sensing.util.process import one_blas_thread

one_blas_thread()

import numpy as np  # noqa: E402

from gp_active_sensing.experiments.figures import COLOURS, STYLE  # noqa: E402
from gp_active_sensing.loop import SensingLoop  # noqa: E402
from gp_active_sensing.planning.bal.tree import StateBlock, Tree  # noqa: E402
from gp_active_sensing.sim import build_loop, build_world, load_scenario  # noqa: E402
from gp_active_sensing.types import FloatArray, PlanLimit  # noqa: E402

RESULTS = Path(__file__).resolve().parents[1] / "experiments" / "results"
PUBLISHED = ("samples=10", "discretisation=draws", "search=published", "bounds=chain")
MODES = {
    "published: draws, S = 10": PUBLISHED,
    "cells, S = 5, published rule": ("samples=5", "search=published"),
    "cells, S = 5, gap-directed (default)": ("samples=5",),
}
READ = 5
"""Random places read before the decision."""


class Enough(Exception):
    """The search has simulated as many paths as were asked for."""


@dataclass
class Trace:
    """What a decision had after each of its paths: expansions, seconds, bounds [nat]."""

    rows: list[tuple[float, float, float, float]]

    def at(self, paths: int) -> FloatArray:
        """(paths, 4) the rows; a search that ended sooner stays as it was, at no further cost."""
        table = np.full((paths, 4), self.rows[-1])
        table[: len(self.rows)] = self.rows[:paths]
        return table


def trace(loop: SensingLoop, paths: int) -> Trace:
    """Plan once, for so many paths at most; bounds are of the information ahead."""
    rows: list[tuple[float, float, float, float]] = []
    started = time.process_time()
    plain = Tree.back_up

    def watched(self: Tree, blocks: list[StateBlock]) -> None:
        plain(self, blocks)
        rows.append((self.expanded, time.process_time() - started, self.lower, self.upper))
        if len(rows) >= paths:
            raise Enough

    Tree.back_up = watched  # type: ignore[method-assign]
    try:
        plan = loop.ask(None, limit=PlanLimit(expansions=1000 * paths))
        if not rows:  # closed by the first bounds
            rows.append((plan.expanded, time.process_time() - started, plan.lower, plan.upper))
    except Enough:
        pass
    finally:
        Tree.back_up = plain  # type: ignore[method-assign]
    return Trace(rows)


def traces(mode: tuple[str, ...], paths: int, decisions: int) -> FloatArray:
    """(decisions, paths, 4), each on a field of its own."""
    found = []
    for seed in range(decisions):
        overrides = [f"policy.{setting}" for setting in ("horizon=3", "alpha=0", *mode)]
        scenario = load_scenario("line", overrides=[f"seed={seed}", *overrides])
        world = build_world(scenario)
        loop = build_loop(scenario, world.topology)
        for place in np.random.default_rng([33, seed]).permutation(100)[:READ].tolist():
            reading = world.sensor.read(place, 0, 0)
            if reading is not None:
                loop.tell([reading])
        found.append(trace(loop, paths).at(paths))
    return np.stack(found)


def draw_paths(figure: Any, paths: int, decisions: int) -> None:
    """Draw seconds (Figure 1b) and bounds (Figure 1c) against simulated paths."""
    seconds, bounds = figure.subplots(1, 2)
    x = np.arange(1, paths + 1)
    for (label, mode), colour in zip(MODES.items(), COLOURS, strict=False):
        found = traces(mode, paths, decisions)
        mean = found.mean(axis=0)
        gap = found[:, :, 3] - found[:, :, 2]
        best = found[:, -1:, 2]
        settled = (found[:, :, 2] >= best - 0.01).argmax(axis=1) + 1
        sys.stdout.write(
            f"{label}: {1e3 * mean[-1, 1] / paths:.2f} ms a path; "
            f"{mean[-1, 1]:.2f} s, {mean[-1, 0]:.0f} "
            f"expansions and a gap of {gap[:, -1].mean():.3f} nat after {paths} paths; the lower "
            f"bound is within 0.01 nat of its end after {np.median(settled):.0f} paths (median)\n"
        )
        seconds.plot(x, mean[:, 1], color=colour, label=label)
        bounds.plot(x, mean[:, 3], color=colour, linewidth=1.2)
        bounds.plot(x, mean[:, 2], color=colour, linewidth=1.2, linestyle="--")
    seconds.set(xlabel="Simulated paths", ylabel="Seconds (one core)", title="Cost of a decision")
    bounds.set(
        xlabel="Simulated paths", ylabel="Value [nat]", title="Upper (—) and lower (- -) bound"
    )
    seconds.legend(loc="upper left", fontsize=7.5)


def main(arguments: list[str] | None = None) -> int:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--paths", type=int, default=800, help="simulated paths a decision")
    parser.add_argument("--decisions", type=int, default=20, help="fields averaged over")
    options = parser.parse_args(arguments)
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    options.out.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.3))
        FigureCanvasAgg(figure)
        draw_paths(figure, options.paths, options.decisions)
        figure.savefig(options.out / "bal_1d_paths.png", dpi=150, metadata={"Software": None})
    return 0


if __name__ == "__main__":
    sys.exit(main())
