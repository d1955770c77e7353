"""Fields that change: average dynamic regret of SparQ-GP-UCB and the policies beside it.

    python benchmarks/sparq_figures.py {synthetic,sea,stations} [--runs N] [--kept DIR] [--only …]

Prints tables for the page `experiments/results/sparq.md` and draws its figures. Every policy plays
the same fields, noise and first places; `±` is the standard error over the runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from gp_active_sensing.util.process import one_blas_thread

one_blas_thread()

import numpy as np  # noqa: E402
from changing_fields import (  # noqa: E402
    DELTA,
    Played,
    World,
    one_behind,
    play,
    play_highest,
    play_random,
    sea,
    stations,
    stay,
    synthetic,
)
from forgetting_filter import play_filter  # noqa: E402

from gp_active_sensing.experiments.figures import COLOURS, STYLE  # noqa: E402
from gp_active_sensing.planning.bandits.nonstationary import (  # noqa: E402
    recommended_share,
    recommended_window,
)
from gp_active_sensing.types import FloatArray  # noqa: E402

RESULTS = Path(__file__).resolve().parents[1] / "experiments" / "results"
RUNS = {"synthetic": 40, "stations": 40, "sea": 20}
"""Of every policy."""


@dataclass(frozen=True)
class Contestant:
    """A policy, and where it gets fresh values.

    Args:
        policy: its name and parameters.
        extra: fresh values at visited places at random, whether it asks or not.
        ask: played by `play_filter` instead, with fresh values from there.
    """

    policy: dict[str, object]
    extra: bool = False
    ask: str | None = None

    def play(self, world: World, seed: int) -> Played:
        """Play one mission."""
        if self.ask is None:
            return play(world, self.policy, seed, extra=self.extra)
        return play_filter(world, seed, scale=float(str(self.policy["scale"])), ask=self.ask)


def contestants(world: World) -> dict[str, Contestant]:
    """Return the policies by label; "+ extra" gets as many fresh values as SparQ-GP-UCB."""
    ucb = {"delta": DELTA}
    asking = {"query_factor": 6.0, "query_power": world.points.shape[1]}
    sparq = {"name": "sparq_gp_ucb", **ucb, **asking}
    tv: dict[str, object] = {"name": "tv_gp_ucb", "epsilon": world.epsilon, **ucb}
    bare: dict[str, dict[str, object]] = {"gp_ucb": {"name": "gp_ucb", **ucb}, "tv_gp_ucb": tv}
    for variation in (1.0, world.variation):
        window = recommended_window(world.steps, variation, world.gain)
        share = recommended_share(world.steps, variation, world.gain)
        bare[f"r_gp_ucb, {window:.0f}"] = {"name": "r_gp_ucb", "window": window, **ucb}
        bare[f"sw_gp_ucb, {window:.0f}"] = {"name": "sw_gp_ucb", "window": window, **ucb}
        bare[f"w_gp_ucb, {share:.3f}"] = {"name": "w_gp_ucb", "gamma": share, **ucb}
    found = {
        "sparq_gp_ucb": Contestant({**sparq, "norm": world.norm}),
        "sparq_gp_ucb, norm 1": Contestant({**sparq, "norm": 1.0}),
        "sparq_gp_ucb, norm 1, β/5": Contestant({**sparq, "norm": 1.0, "scale": 5.0}),
        "sparq_gp_ucb, at random": Contestant({**sparq, "norm": world.norm}, extra=True),
    }
    for scale, label in ((1.0, ""), (5.0, ", β/5")):
        found[f"tv_gp_ucb{label} + extra"] = Contestant({**tv, "scale": scale}, ask="spread")
        found[f"tv_gp_ucb{label} + extra, at random"] = Contestant(
            {**tv, "scale": scale}, ask="random"
        )
    for name in [name for name in bare if name.startswith("sw")]:
        found[f"{name} + extra"] = Contestant({**bare[name], **asking})
    for scale, label in ((1.0, ""), (5.0, ", β/5")):
        for name, policy in bare.items():
            exact = "nowhere" if name == "tv_gp_ucb" else None
            found[name + label] = Contestant({**policy, "scale": scale}, ask=exact)
    return found


def settings(world: World) -> str:
    """Return what was fitted, as text."""
    belief = world.belief
    return (
        f"{len(world.points)} places, T = {world.steps}, readings' noise {world.noise_std:g}; "
        f"length-scales {belief.length_scales}, signal {belief.parts()[0][0]:g}, mean "
        f"{belief.mean_value:g}, ε = {world.epsilon:g}; γ_T ≤ {world.gain:.3g} nat, B_T ≥ "
        f"{world.variation:.3g}, norm {world.norm:.3g}"
    )


def played(
    world: World, runs: int, kept: Path | None, only: list[str] | None
) -> dict[str, list[Played]]:
    """Play all missions; those that an earlier call left in `kept` are read from there."""
    done: dict[str, list[Played]] = {}
    for label, one in contestants(world).items():
        file = None if kept is None else kept / f"{world.name}, {label.replace('/', ' by ')}.json"
        rows = json.loads(file.read_text()) if file is not None and file.exists() else []
        started = time.process_time()
        before = len(rows)
        for seed in range(before, runs if only is None or label in only else 0):
            mission = one.play(world, seed)
            rows.append([mission.regret.tolist(), mission.asked, mission.places.tolist()])
            if file is not None:
                spare = file.with_suffix(".part")
                spare.write_text(json.dumps(rows))
                spare.replace(file)
        if len(rows) > before:
            taken = (time.process_time() - started) / (len(rows) - before)
            print(f"{label}: {taken:.2f} s a mission", file=sys.stderr, flush=True)
        if len(rows) > 1:
            done[label] = [Played(np.array(r), a, np.array(p)) for r, a, p in rows[:runs]]
    for label, spread in (("at random", False), ("far apart", True)):
        done[f"highest of as many values, {label}"] = [
            play_highest(world, seed, spread=spread) for seed in range(runs)
        ]
    done["random choice"] = [play_random(world, seed) for seed in range(runs)]
    done["the best fixed place"] = [stay(world)] * runs
    done["where it was highest a step before"] = [one_behind(world)] * runs
    return done


def with_error(values: FloatArray, *, sign: bool = False) -> str:
    """Return mean ± standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():{'+' if sign else ''}.3f} ± {error:.3f}".replace("-", "−")


def table(done: dict[str, list[Played]], checkpoints: list[int]) -> str:
    """Return Markdown: ``R_T / T`` at the checkpoints, late regret, and the paired difference."""
    last = checkpoints[-1] // 5
    against = next(iter(done))
    head = [f"T = {t}" for t in checkpoints]
    head += [f"last {last}", f"T = {checkpoints[-1]}, minus {against}", "extra readings", "runs"]
    lines = ["| policy | " + " | ".join(head) + " |", "|" + " --- |" * (len(head) + 1)]
    for label, missions in done.items():
        averages = np.array([m.average for m in missions])
        cells = [with_error(averages[:, t - 1]) for t in checkpoints]
        cells.append(with_error(np.array([m.regret[-last:].mean() for m in missions])))
        beside = np.array([m.average[-1] for m in done[against]])
        both = min(len(missions), len(beside))
        paired = with_error(averages[:both, -1] - beside[:both], sign=True)
        cells.append("" if label == against else paired)
        asked = np.mean([m.asked for m in missions])
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {asked:,.0f} | {len(missions)} |")
    return "\n".join(lines)


def draw(
    done: dict[str, list[Played]], shown: list[str], target: Path, xlabel: str, unit: str
) -> None:
    """Draw average regret against the step."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.2, 3.8))
        for i, label in enumerate(label for label in shown if label in done):
            averages = np.array([m.average for m in done[label]])
            mean, spread = averages.mean(axis=0), averages.std(axis=0)
            t = np.arange(1, len(mean) + 1)
            colour, style = COLOURS[i % len(COLOURS)], "--" if "extra" in label else "-"
            if label in ("random choice", "the best fixed place"):
                style = ":"
            axes.plot(t, mean, style, color=colour, label=label, linewidth=1.5)
            axes.fill_between(t, mean - spread, mean + spread, color=colour, alpha=0.12, lw=0)
        axes.set(xlabel=xlabel, ylabel=f"average dynamic regret  R_T / T{unit}", ylim=(0, None))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.savefig(target, dpi=160)
        plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("world", choices=("synthetic", "sea", "stations"))
    parser.add_argument("--runs", type=int, help=f"of every policy; default: {RUNS}")
    parser.add_argument("--data", default=os.environ.get("GPAS_DATA", ""), help="data folder")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--kept", type=Path, help="folder for the missions, so that it can go on")
    parser.add_argument("--only", nargs="*", help="policies to play now; none = just the tables")
    options = parser.parse_args()
    if options.world == "synthetic":
        world, points = synthetic(), [50, 100, 200, 300, 400, 500]
    else:
        path = Path(options.data) / "fields" / "sst_pacific_monthly.npz"
        world, points = sea(path), [12, 24, 48, 72, 96, 120]
        if options.world == "stations":
            world = stations(world)
    runs = options.runs or RUNS[options.world]
    print(settings(world) + f"; {runs} runs (seeds 0 … {runs - 1})\n", flush=True)
    done = played(world, runs, options.kept, options.only)
    print(table(done, points))
    blind = f"{recommended_window(world.steps, 1.0, world.gain):.0f}"
    share = f"{recommended_share(world.steps, 1.0, world.gain):.3f}"
    shown = [
        "sparq_gp_ucb",
        "gp_ucb",
        "tv_gp_ucb",
        f"r_gp_ucb, {blind}",
        f"sw_gp_ucb, {blind}",
        f"w_gp_ucb, {share}",
        f"sw_gp_ucb, {blind} + extra",
        "tv_gp_ucb + extra",
        "highest of as many values, far apart",
        "random choice",
        "the best fixed place",
    ]
    labels = ("decisions", "") if world.name == "synthetic" else ("months", "  [degC]")
    draw(done, shown, options.out / f"sparq_{world.name}.png", *labels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
