"""Draw the figures of searches in batches, and print their tables, from records of experiments.

    gp-active-sensing experiment batch_5 --out batch_5        # the same for batch_10, batch_alone
    python benchmarks/batch_figures.py batch_5 batch_10 --alone batch_alone [--out DIR]

Writes ``batch.png``: the median immediate regret against rounds, for each function and batch size.
Prints the medians, and the published claims with the differences found, paired by seed.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gp_active_sensing.experiments import load_records, paired_difference
from gp_active_sensing.experiments.figures import COLOURS, STYLE
from gp_active_sensing.types import FloatArray

RESULTS = Path(__file__).resolve().parents[1] / "experiments" / "results"
NAMES = {"branin": "Branin–Hoo", "cosines": "mixture of cosines", "hartmann6": "Hartmann-6"}
CLAIMS = (
    ("DPP-SAMPLE below DPP-MAX (UCB)", "ucb_dpp_sample", "ucb_dpp_max"),
    ("DPP-SAMPLE below DPP-MAX (EST)", "est_dpp_sample", "est_dpp_max"),
    ("DPP-MAX below GP-BUCB", "ucb_dpp_max", "gp_bucb"),
    ("DPP-MAX below GP-BUCB with C' and first readings", "ucb_dpp_max", "gp_bucb_wide"),
    ("DPP-MAX below B-EST (EST)", "est_dpp_max", "b_est"),
    ("DPP-SAMPLE below LP-UCB (UCB)", "ucb_dpp_sample", "lp_ucb"),
)

Runs = Mapping[tuple[str, str], FloatArray]
"""(configuration, policy) -> (seeds, rounds) immediate regret."""


def runs_of(folder: Path, size: int, key: str = "recommended_regret") -> Runs:
    """Read the regret after every `size` readings, by seed in the order of the seeds."""
    found: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(dict)
    for record in load_records(str(folder)).records:
        stages = record["stages"]
        values = [float(stages[i][key]) for i in range(size - 1, len(stages), size)]
        found[record["configuration"], record["policy"]][record["seed"]] = values
    return {
        label: np.array([by_seed[seed] for seed in sorted(by_seed)])
        for label, by_seed in found.items()
    }


def median_error(values: FloatArray, draws: int = 2000) -> float:
    """Standard error of a median, by the bootstrap."""
    rng = np.random.default_rng([0, values.size])
    picked = rng.integers(values.size, size=(draws, values.size))
    return float(np.median(values[picked], axis=1).std(ddof=1))


def table_of(runs: Runs, alone: Runs | None, rounds: Sequence[int], size: int) -> str:
    """Return the medians as a table, one line a function and policy."""
    heads = [f"{t} rounds, {t * size} readings" for t in rounds]
    lines = [f"| function | policy | {' | '.join(heads)} |", "|" + " --- |" * (2 + len(heads))]
    rows = list(runs.items())
    if alone is not None:
        names = {"gp_ucb": "gp_ucb one by one", "est": "est one by one"}
        for (function, policy), values in alone.items():
            if policy in names:
                rows.append(((function, names[policy]), values[:, size - 1 :: size]))
    order = list(NAMES)
    for (function, policy), values in sorted(rows, key=lambda row: order.index(row[0][0])):
        cells = [
            f"{np.median(values[:, t - 1]):.3g} ± {median_error(values[:, t - 1]):.2g}"
            for t in rounds
        ]
        lines.append(f"| {NAMES[function]} | {policy} | {' | '.join(cells)} |")
    return "\n".join(lines)


def claims_of(runs: Runs, size: int) -> str:
    """Return each claim with the difference of the regret, averaged over the rounds."""
    lines = []
    for claim, less, more in CLAIMS:
        cells = []
        for function in NAMES:
            first, second = runs[function, less].mean(axis=1), runs[function, more].mean(axis=1)
            difference = paired_difference(first.tolist(), second.tolist())
            z = difference.mean / difference.error
            word = "yes" if z < -2 else "no, above" if z > 2 else "not seen"
            cells.append(f"{difference.mean:.3g} ± {difference.error:.2g}: {word}")
        lines.append(f"| {claim} | {size} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(found: Mapping[int, Runs], target: Path) -> None:
    """Draw the medians against the rounds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)
    policies = list(dict.fromkeys(policy for runs in found.values() for _, policy in runs))
    figure, axes = plt.subplots(
        len(found),
        len(NAMES),
        figsize=(11.0, 3.2 * len(found)),
        squeeze=False,
        layout="constrained",
    )
    for row, (size, runs) in zip(axes, found.items(), strict=True):
        for axis, (function, name) in zip(row, NAMES.items(), strict=True):
            for number, policy in enumerate(policies):
                values = np.median(runs[function, policy], axis=0)
                style = "--" if "sample" in policy else ":" if "_max" in policy else "-"
                axis.plot(
                    np.arange(1, values.size + 1),
                    values,
                    style,
                    color=COLOURS[number % len(COLOURS)],
                    label=policy,
                )
            axis.set_title(f"{name}, B = {size}")
            axis.set_ylim(bottom=0.0, top=_top(runs, function))
        row[0].set_ylabel("median immediate regret")
    for axis in axes[-1]:
        axis.set_xlabel("round")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=5, frameon=False)
    figure.savefig(target, dpi=120)
    plt.close(figure)


def _top(runs: Runs, function: str) -> float:
    """What the axis shows: the regret of the third round, where all have begun to learn."""
    thirds = [np.median(v[:, 2]) for (f, _), v in runs.items() if f == function]
    return 1.1 * float(max(thirds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="of batch_5, batch_10")
    parser.add_argument("--alone", type=Path, help="of batch_alone")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the picture")
    options = parser.parse_args()
    found: dict[int, Runs] = {}
    for folder in options.folders:
        size = int(load_records(str(folder)).records[0]["config"]["probes"])
        found[size] = runs_of(folder, size)
    alone = None if options.alone is None else runs_of(options.alone, 1)
    for size, runs in found.items():
        print(f"### B = {size}\n\n{table_of(runs, alone, (5, 10, 15), size)}\n")
    heads = " | ".join(NAMES.values())
    print(f"| claim | B | {heads} |\n|{' --- |' * (2 + len(NAMES))}")
    for size, runs in found.items():
        print(claims_of(runs, size))
    draw(found, options.out / "batch.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
