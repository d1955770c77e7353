"""Fields that change: average dynamic regret of SparQ-GP-UCB and the policies beside it.

    python benchmarks/sparq_figures.py {synthetic,sea,stations} [--runs N] [--data DIR]

Prints tables for the page `experiments/results/sparq.md` and draws its figures. Every policy plays
the same fields, noise and first places; `±` is the standard error over the runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from gp_active_sensing.util.process import one_blas_thread

one_blas_thread()

import numpy as np  # noqa: E402
from changing_fields import (  # noqa: E402
    DELTA,
    Played,
    World,
    play,
    play_random,
    sea,
    stations,
    synthetic,
)

from gp_active_sensing.experiments.figures import COLOURS, STYLE  # noqa: E402
from gp_active_sensing.planning.bandits.nonstationary import (  # noqa: E402
    recommended_share,
    recommended_window,
)

RESULTS = Path(__file__).resolve().parents[1] / "experiments" / "results"
Contest = dict[str, tuple[dict[str, object], bool]]


def contestants(world: World) -> Contest:
    """Return by label the policies, and where those that ask for nothing get fresh values."""
    ucb = {"delta": DELTA}
    found: Contest = {
        "gp_ucb": ({"name": "gp_ucb", **ucb}, False),
        "tv_gp_ucb": ({"name": "tv_gp_ucb", "epsilon": world.epsilon, **ucb}, False),
    }
    for variation in (1.0, world.variation):
        window = recommended_window(world.steps, variation, world.gain)
        size = f"{window:.0f}"
        share = recommended_share(world.steps, variation, world.gain)
        found[f"r_gp_ucb, {size}"] = ({"name": "r_gp_ucb", "window": window, **ucb}, False)
        found[f"sw_gp_ucb, {size}"] = ({"name": "sw_gp_ucb", "window": window, **ucb}, False)
        found[f"w_gp_ucb, {share:.3f}"] = ({"name": "w_gp_ucb", "gamma": share, **ucb}, False)
    narrow = {f"{label}, β/5": ({**p, "scale": 5.0}, False) for label, (p, _) in found.items()}
    fed = [label for label in found if label.startswith(("sw", "tv"))]
    fed_narrow = "tv_gp_ucb, β/5"
    found |= narrow
    found |= {f"{label} + extra": (found[label][0], True) for label in (*fed, fed_narrow)}
    sparq = {"name": "sparq_gp_ucb", "delta": DELTA, "query_power": world.points.shape[1]}
    found["sparq_gp_ucb"] = ({**sparq, "norm": world.norm}, False)
    found["sparq_gp_ucb, norm 1"] = ({**sparq, "norm": 1.0}, False)
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


def played(world: World, runs: int, kept: Path | None) -> dict[str, list[Played]]:
    """Play all missions; those that an earlier call left in `kept` are read from there."""
    done: dict[str, list[Played]] = {}
    old = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    for label, (policy, extra) in contestants(world).items():
        # A thousand rows for each of them: a minute a mission, and they hardly differ.
        wanted = max(2, runs // 4) if extra and label.startswith("tv") else runs
        missions = [Played(np.array(r), a) for r, a in old.get(label, [])][:wanted]
        started = time.perf_counter()
        fresh = range(len(missions), wanted)
        missions += [play(world, policy, seed, extra=extra) for seed in fresh]
        done[label] = missions
        if fresh:
            taken = (time.perf_counter() - started) / len(fresh)
            print(f"{label}: {taken:.2f} s a mission", file=sys.stderr, flush=True)
            old[label] = [(m.regret.tolist(), m.asked) for m in missions]
            if kept is not None:
                kept.write_text(json.dumps(old))
    done["random choice"] = [play_random(world, seed) for seed in range(runs)]
    done["the best fixed place"] = [Played(world.fixed(), 0)] * runs
    done["where it was highest a step before"] = [Played(world.one_behind(), 0)] * runs
    return done


def table(done: dict[str, list[Played]], checkpoints: list[int]) -> str:
    """Return Markdown: ``R_T / T`` at the checkpoints, mean ± standard error."""
    head = (
        "| policy | " + " | ".join(f"T = {t}" for t in checkpoints) + " | extra readings | runs |"
    )
    lines = [head, "|" + " --- |" * (len(checkpoints) + 3)]
    for label, missions in done.items():
        averages = np.array([m.average for m in missions])[:, np.array(checkpoints) - 1]
        error = averages.std(axis=0, ddof=1) / np.sqrt(len(missions))
        cells = [f"{a:.3f} ± {e:.3f}" for a, e in zip(averages.mean(axis=0), error, strict=True)]
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
        for i, label in enumerate(shown):
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
    parser.add_argument("--runs", type=int, help="default: 40; of the sea 20")
    parser.add_argument("--data", default=os.environ.get("GPAS_DATA", ""), help="data folder")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--kept", type=Path, help="JSON file of the missions, so that it can go on")
    options = parser.parse_args()
    if options.world == "synthetic":
        world, points, runs = synthetic(), [50, 100, 200, 300, 400, 500], options.runs or 40
    else:
        path = Path(options.data) / "fields" / "sst_pacific_monthly.npz"
        world, points, runs = sea(path), [12, 24, 48, 72, 96, 120], options.runs or 20
        if options.world == "stations":
            world = stations(world)
    print(settings(world) + f"; {runs} runs (seeds 0 … {runs - 1})\n", flush=True)
    done = played(world, runs, options.kept)
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
        "random choice",
        "the best fixed place",
    ]
    labels = ("decisions", "") if world.name == "synthetic" else ("months", "  [degC]")
    draw(done, shown, options.out / f"sparq_{world.name}.png", *labels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
