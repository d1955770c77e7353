"""Draw the figure of searches in batches, and print their tables, from what batch_rounds.py kept.

    python benchmarks/batch_rounds.py batch_5 batch_10 batch_alone batch_width --kept FOLDER
    python benchmarks/batch_figures.py FOLDER [--out DIR]

Writes ``batch.png``: the median immediate regret against rounds, for each function and batch size.
Prints the medians, and the published claims with the differences found, paired by seed, both for
the place with the largest posterior mean as what a search recommends and for that of the best
reading.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_active_sensing.experiments import paired_difference
from gp_active_sensing.experiments.figures import COLOURS, STYLE
from gp_active_sensing.types import FloatArray

RESULTS = Path(__file__).resolve().parents[1] / "experiments" / "results"
NAMES = {"branin": "Branin–Hoo", "cosines": "mixture of cosines", "hartmann6": "Hartmann-6"}
CLAIMS = (
    ("DPP-SAMPLE below DPP-MAX (UCB)", "ucb_dpp_sample", "ucb_dpp_max"),
    ("DPP-SAMPLE below DPP-MAX (EST)", "est_dpp_sample", "est_dpp_max"),
    ("DPP-SAMPLE below GP-BUCB, C' and first readings", "ucb_dpp_sample", "gp_bucb_wide"),
    ("DPP-SAMPLE below GP-BUCB, C' alone", "ucb_dpp_sample", "gp_bucb_printed"),
    ("DPP-SAMPLE below GP-BUCB, not widened", "ucb_dpp_sample", "gp_bucb"),
    ("DPP-MAX below GP-BUCB, C' and first readings", "ucb_dpp_max", "gp_bucb_wide"),
    ("DPP-MAX below GP-BUCB, C' alone", "ucb_dpp_max", "gp_bucb_printed"),
    ("DPP-MAX below GP-BUCB, not widened", "ucb_dpp_max", "gp_bucb"),
    ("DPP-SAMPLE below B-EST, C' and first readings (EST)", "est_dpp_sample", "b_est_wide"),
    ("DPP-SAMPLE below B-EST, not widened (EST)", "est_dpp_sample", "b_est"),
    ("DPP-MAX below B-EST, C' and first readings (EST)", "est_dpp_max", "b_est_wide"),
    ("DPP-MAX below B-EST, not widened (EST)", "est_dpp_max", "b_est"),
    ("DPP-SAMPLE below LP-UCB (UCB)", "ucb_dpp_sample", "lp_ucb"),
    ("LP-UCB below DPP-MAX (UCB)", "lp_ucb", "ucb_dpp_max"),
)
SCALES = (1, 20, 80)
"""What divides β_t in batch_width; 5 is in batch_5."""
WIDTH_POLICIES = ("gp_bucb", "ucb_dpp_max", "ucb_dpp_sample")
WIDTH_CLAIMS = (
    ("DPP-SAMPLE below DPP-MAX", "ucb_dpp_sample", "ucb_dpp_max"),
    ("DPP-MAX below GP-BUCB, not widened", "ucb_dpp_max", "gp_bucb"),
    ("DPP-SAMPLE below GP-BUCB, not widened", "ucb_dpp_sample", "gp_bucb"),
    ("DPP-SAMPLE below GP-BUCB, C' and first readings", "ucb_dpp_sample", "gp_bucb_wide"),
)


@dataclass(frozen=True)
class Run:
    """A search.

    Args:
        by_mean: (T,) regret of the place with the largest posterior mean after each round.
        by_reading: (T,) regret of the place of the best reading so far.
        each: (T, B) regret of the places read.
        more: what else its line has.
    """

    by_mean: FloatArray
    by_reading: FloatArray
    each: FloatArray
    more: Mapping[str, Any]


Runs = Mapping[tuple[str, str], Mapping[int, Run]]
"""(configuration, policy) -> seed -> run."""


def run_of(line: Mapping[str, Any]) -> Run:
    """Return the run of a line that batch_rounds.py wrote."""
    regret, value = np.array(line["regret"]), np.array(line["value"])
    best = [int(np.argmax(value[: t + 1])) for t in range(len(value))]
    return Run(np.array(line["named"]), regret.ravel()[best], regret, line)


def runs_of(file: Path) -> Runs:
    """Read the searches of an experiment."""
    found: dict[tuple[str, str], dict[int, Run]] = defaultdict(dict)
    for text in file.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        found[line["configuration"], line["policy"]][line["seed"]] = run_of(line)
    return found


def values_of(runs: Mapping[int, Run], kind: str, seeds: Iterable[int] | None = None) -> FloatArray:
    """Return (seeds, T) regret by "mean" or "reading", in the order of the seeds."""
    chosen = sorted(runs) if seeds is None else seeds
    return np.array([getattr(runs[seed], f"by_{kind}") for seed in chosen])


def median_error(values: FloatArray, draws: int = 2000) -> float:
    """Standard error of a median, by the bootstrap."""
    rng = np.random.default_rng([0, values.size])
    picked = rng.integers(values.size, size=(draws, values.size))
    return float(np.median(values[picked], axis=1).std(ddof=1))


def shown(values: FloatArray) -> str:
    return f"{np.median(values):.3g} ± {median_error(values):.2g}"


def table_of(runs: Runs, alone: Runs, rounds: Sequence[int], size: int) -> str:
    """Return the medians as a table, one line a function and policy."""
    kinds = ("mean", "reading")
    heads = [f"{t} rounds, by {kind}" for t in rounds for kind in kinds]
    lines = [f"| function | policy | n | {' | '.join(heads)} |", "|" + " --- |" * (3 + len(heads))]
    rows = [(*label, found, 1) for label, found in runs.items()]
    rows += [(f, f"{policy} one by one", found, size) for (f, policy), found in alone.items()]
    order = list(NAMES)
    for function, policy, found, step in sorted(rows, key=lambda row: order.index(row[0])):
        columns = [values_of(found, kind)[:, t * step - 1] for t in rounds for kind in kinds]
        cells = " | ".join(shown(column) for column in columns)
        lines.append(f"| {NAMES[function]} | {policy} | {len(found)} | {cells} |")
    return "\n".join(lines)


def compared(runs: Runs, function: str, less: str, more: str, kind: str) -> str:
    """Return the difference of the regret, averaged over the rounds, what it says, and of how many.

    Of the seeds that both have; "" with fewer than two.
    """
    first, second = runs.get((function, less), {}), runs.get((function, more), {})
    seeds = sorted(set(first) & set(second))
    if len(seeds) < 2:
        return ""
    values = [values_of(found, kind, seeds).mean(axis=1) for found in (first, second)]
    difference = paired_difference(values[0].tolist(), values[1].tolist())
    z = difference.mean / difference.error
    word = "yes" if z < -2 else "no, above" if z > 2 else "not seen"
    return f"{difference.mean:.3g} ± {difference.error:.2g}: {word}, n = {len(seeds)}"


def claims_of(
    runs: Runs, claims: Iterable[tuple[str, str, str]], mark: object, suffix: str = ""
) -> list[str]:
    """Return a line a claim and kind of recommendation, of those that can be compared."""
    lines = []
    for claim, less, more in claims:
        pair = less + suffix, more + suffix
        for kind in ("mean", "reading"):
            cells = [compared(runs, function, *pair, kind) for function in NAMES]
            if any(cells):
                lines.append(f"| {claim} | {mark} | {kind} | {' | '.join(cells)} |")
    return lines


def claims_head(mark: str) -> str:
    heads = f"| claim | {mark} | named by | {' | '.join(NAMES.values())} |"
    return f"{heads}\n|{' --- |' * (3 + len(NAMES))}"


def averages_of(runs: Runs, baseline: str, at: Sequence[int]) -> str:
    """Return the average regret ``R_T / T`` of single searches, and what it is above a baseline's.

    Args:
        runs: of one configuration.
        baseline: policy.
        at: T, numbers of readings.
    """
    heads = [f"{part} {t} readings" for t in at for part in ("after", "difference after")]
    lines = [f"| policy | n | {' | '.join(heads)} |", "|" + " --- |" * (2 + len(heads))]
    of = {
        policy: {
            seed: np.cumsum(run.each) / np.arange(1, run.each.size + 1) for seed, run in by.items()
        }
        for (_, policy), by in runs.items()
    }
    for policy, by_seed in of.items():
        seeds = sorted(set(by_seed) & set(of[baseline]))
        own = np.array([by_seed[seed] for seed in seeds])
        gain = own - np.array([of[baseline][seed] for seed in seeds])
        cells = []
        for t in at:
            cells.append(mean_shown(own[:, t - 1]))
            cells.append("" if policy == baseline else mean_shown(gain[:, t - 1]))
        lines.append(f"| {policy} | {len(seeds)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def own_changes(runs: Runs, scale: int, suffix: str, usual: Runs, base: int = 5) -> list[str]:
    """Return a line a function, policy and kind of recommendation: its regret, less that with 5.

    Averaged over the rounds; the difference is paired, of the seeds that both have.

    Args:
        runs: where β_t is divided by `scale`, policies named with `suffix`.
        scale: what divides it.
        suffix: of the labels.
        usual: where it is divided by `base`, policies without suffix.
        base: what divides it there.
    """
    lines = []
    for (function, name), policy in itertools.product(NAMES.items(), WIDTH_POLICIES):
        found = runs.get((function, policy + suffix), {})
        other = usual.get((function, policy), {})
        for kind in ("mean", "reading"):
            if not found:
                continue
            own = mean_shown(values_of(found, kind).mean(axis=1))
            seeds = sorted(set(found) & set(other))
            less = ""
            if scale != base and len(seeds) > 1:
                values = values_of(found, kind, seeds) - values_of(other, kind, seeds)
                less = f"{mean_shown(values.mean(axis=1))}, n = {len(seeds)}"
            lines.append(
                f"| {name} | {policy} | {scale} | {kind} | {len(found)} | {own} | {less} |"
            )
    return lines


OWN_HEAD = (
    "| function | policy | β_t divided by | named by | n | regret | less its own with 5 |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


def habits_of(runs: Runs, mark: object, suffix: str = "", early: int = 5) -> list[str]:
    """Return a line a function and policy: where its first rounds read, and in what region."""
    lines = []
    for function, name in NAMES.items():
        for policy in WIDTH_POLICIES:
            found = runs.get((function, policy + suffix), {})
            if not found:
                continue
            keys = ["edge"] + ["region"] * ("region" in next(iter(found.values())).more)
            cells = []
            for key in ("edge", "region"):
                mean = [
                    float(np.mean(run.more[key][:early])) for run in found.values() if key in keys
                ]
                cells.append(mean_shown(np.array(mean)) if mean else "")
            others = np.array([run.each[:early, 1:].mean() for run in found.values()])
            line = f"{name} | {policy} | {mark} | {' | '.join(cells)} | {mean_shown(others)}"
            lines.append(f"| {line} |")
    return lines


TOLD_HEAD = (
    "| function | policy | B | n | told, median | largest | above 1 nat |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)
HABITS_HEAD = (
    "| function | policy | β_t divided by | at the edge | R⁺ | regret of members 2 … B |\n"
    "| --- | --- | --- | --- | --- | --- |"
)


def mean_shown(values: FloatArray) -> str:
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():.3g} ± {error:.2g}"


def told_of(runs: Runs, mark: object) -> list[str]:
    """Return a line a function and policy: what members of a batch told at most [nat]."""
    lines = []
    for function, name in NAMES.items():
        for policy in ("gp_bucb", "gp_bucb_wide"):
            runs_told = {
                k: v for k, v in runs.get((function, policy), {}).items() if "told" in v.more
            }
            if not runs_told:
                continue
            # After the first ten readings of the two-stage start, in any case.
            first = math.ceil(10 / int(next(iter(runs_told.values())).more["probes"]))
            told = np.array([run.more["told"][first:] for run in runs_told.values()])
            cells = f"{np.median(told):.2f} | {told.max():.2f} | {(told > 1.0).mean():.0%}"
            lines.append(f"| {name} | {policy} | {mark} | {len(told)} | {cells} |")
    return lines


def show(head: str, parts: Iterable[Sequence[str]]) -> None:
    """Print a table that is made in parts; nothing where it has no lines."""
    if lines := [line for part in parts for line in part]:
        print(head, *lines, "", sep="\n")


def draw(found: Mapping[int, Runs], target: Path) -> None:
    """Draw the medians by posterior mean against the rounds."""
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
                if (function, policy) not in runs:
                    continue
                values = np.median(values_of(runs[function, policy], "mean"), axis=0)
                style = "--" if "sample" in policy else ":" if "_max" in policy else "-"
                if number >= len(COLOURS):
                    style = "-."  # the colours begin again
                axis.plot(
                    np.arange(1, values.size + 1),
                    values,
                    style,
                    color=COLOURS[number % len(COLOURS)],
                    label=policy,
                )
            axis.set_title(f"{name}, B = {size}")
            axis.set_visible(bool(axis.lines))  # nothing was played
            axis.set_ylim(bottom=0.0, top=_top(runs, function))
        row[0].set_ylabel("median immediate regret")
    for axis in axes[-1]:
        axis.set_xlabel("round")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=6, frameon=False)
    figure.savefig(target, dpi=120)
    plt.close(figure)


def _top(runs: Runs, function: str) -> float:
    """What the axis shows: the regret of the third round, where all have begun to learn."""
    thirds = [np.median(values_of(v, "mean")[:, 2]) for (f, _), v in runs.items() if f == function]
    return 1.1 * float(max(thirds, default=1.0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="that batch_rounds.py wrote")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the picture")
    options = parser.parse_args()
    files = {name: options.folder / f"batch_{name}.jsonl" for name in ("5", "10", "alone", "width")}
    kept = {name: runs_of(file) if file.is_file() else {} for name, file in files.items()}
    batches = {size: kept[str(size)] for size in (5, 10) if kept[str(size)]}
    for size, runs in batches.items():
        print(f"### B = {size}\n\n{table_of(runs, kept['alone'], (5, 10, 15), size)}\n")
    show(claims_head("B"), (claims_of(runs, CLAIMS, size) for size, runs in batches.items()))
    widths = [(scale, kept["width"], f"_{scale}") for scale in SCALES]
    widths.insert(1, (5, kept["5"], ""))
    show(
        claims_head("β_t divided by"),
        (claims_of(runs, WIDTH_CLAIMS, scale, suffix) for scale, runs, suffix in widths),
    )
    show(OWN_HEAD, (own_changes(runs, scale, suffix, kept["5"]) for scale, runs, suffix in widths))
    show(HABITS_HEAD, (habits_of(runs, scale, suffix) for scale, runs, suffix in widths))
    show(TOLD_HEAD, (told_of(runs, size) for size, runs in batches.items()))
    if (single := options.folder / "gp_ucb_incumbent.jsonl").is_file():
        kept["incumbent"] = runs_of(single)
        print(averages_of(kept["incumbent"], "gp_ucb_fifth", (50, 100, 300)))
    if batches:
        draw(batches, options.out / "batch.png")
    seconds = [
        run.more["seconds"] for r in kept.values() for by in r.values() for run in by.values()
    ]
    print(f"\n{len(seconds)} searches, {sum(seconds) / 60.0:.0f} minutes of computing")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
