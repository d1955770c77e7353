"""Tables and the picture of the synthetic experiment with a belief over kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Section
from vbks_data import MORE, TRUTHS
from vbks_runs import error_of, shown

STAGES = (0.1, 0.2, 0.4, 0.7, 1.0)
CLOSE, KIN = 0.01, 0.1
"""Covariances, or predictions, that differ by so much are the same; or nearly so."""


@dataclass(frozen=True)
class Size:
    """How much is done.

    Args:
        sets: of kernels; how many seeds, steps of a stage at most, starts.
        stages: shares of the rows after which the belief is recorded.
        rows: of the data.
        top: kernels that are fitted anew to all rows; refit, again: their steps and starts.
        inducing: inputs.
        tries: of the search for the nearest covariance.
        floor: least noise, over the outputs' deviation, with which all is learned once more.
        more: starts of each kernel of the last set with which that is learned yet once more, and
            on how many seeds.
    """

    sets: dict[str, tuple[int, int, int]]
    stages: tuple[float, ...] = STAGES
    rows: int = MORE
    top: int = 12
    refit: int = 1000
    again: int = 4
    inducing: int = 16
    tries: int = 4
    floor: float = 0.05
    more: tuple[int, int] = (16, 2)


BATCH = 32


def course(found: dict[str, Any], name: str, key: str) -> np.ndarray:
    """(T,) of a kernel over the stages; 0 where it took no part."""
    if name not in found["names"]:
        return np.zeros(len(found["rows"]))
    return np.array(found[key])[:, found["names"].index(name)]


def against_data(runs: dict[tuple[str, str], list[dict[str, Any]]], size: Size) -> Section:
    shares = [f"{100 * share:g} %" for share in size.stages]
    starts = ", ".join(f"{k}: {n} starts and {steps}" for k, (_, steps, n) in size.sets.items())
    section = Section(
        "The kernel that the data came from: belief against data used",
        "python benchmarks/run.py vbks_synthetic",
        f"{size.rows} values of a noise-free draw in [-10, 10] (the predictive mean given 256 "
        f"values of the full process), {size.inducing} inducing inputs, mini-batches of {BATCH}, "
        f"{starts} steps at most a stage, each of which goes on where the one before ended; full "
        "q(θ); inputs and outputs are scaled, not centred. Mean ± s.e. "
        "over the seeds of q* and of the softmax of the local ELBOs of the true kernel, after so "
        f"much of the data; `anew`: the {size.top} most probable kernels fitted anew to all rows, "
        f"{size.again} starts and {size.refit} steps at most. `first`: seeds on which the true "
        "kernel then has the largest local ELBO.",
        ("true kernel", "kernels", "seeds", "", *shares, "anew", "first"),
    )
    for (name, kernels), found in runs.items():
        for key, label, last in (("probabilities", "q*", "q"), ("softmax", "softmax", "softmax")):
            values = np.array([course(one, name, key) for one in found])
            anew = [of_refit(one, [name], last) for one in found]
            first = sum(one["refit"]["names"][0] == name for one in found)
            section.rows.append(
                (
                    *(name, kernels, len(found), label),
                    *(shown(values[:, k], 2) for k in range(len(size.stages))),
                    *(shown(anew, 2), f"{first} of {len(found)}"),
                )
            )
    return section


def of_noise(
    noisy: dict[tuple[str, str, int], list[dict[str, Any]]],
    near: dict[str, dict[str, float]],
    size: Size,
) -> Section:
    section = Section(
        "The same, with the noise of a sensor",
        "python benchmarks/run.py vbks_synthetic",
        f"As above, but σ_n is {size.floor:g} of the outputs' deviation at least, and all rows are "
        "learned from at once, from so many `starts` of each kernel. `near`: q* of all kernels "
        f"whose covariance comes within {KIN:.0%} of the true one (last table). `first`: seeds on "
        "which the true kernel has the largest local ELBO; `behind`: on each of the others, by how "
        "much it is smaller than the largest [nat], and of which kernel that is.",
        ("true kernel", "kernels", "starts", "seeds", "q*", "softmax", "near", "first", "behind"),
    )
    for (name, kernels, starts), found in noisy.items():
        kin = {kernel for kernel, off in near[name].items() if off < KIN} | {name}
        cells = []
        for key, those in (("q", {name}), ("softmax", {name}), ("q", kin)):
            tables = [zip(one["names"], one[key], strict=True) for one in found]
            cells.append(shown([sum(p for k, p in table if k in those) for table in tables], 2))
        behind = [f"{one['behind']:.0f} ({one['best']})" for one in found if one["best"] != name]
        first = f"{len(found) - len(behind)} of {len(found)}"
        section.rows.append(
            (name, kernels, starts, len(found), *cells, first, ", ".join(behind) or "–")
        )
    return section


def of_refit(one: dict[str, Any], names: Iterable[str], key: str = "q") -> float:
    """Probability of some kernels, of those that were fitted anew."""
    found = dict(zip(one["refit"]["names"], one["refit"][key], strict=True))
    return float(sum(found.get(name, 0.0) for name in names))


def at_the_end(
    runs: dict[tuple[str, str], list[dict[str, Any]]], near: dict[str, dict[str, float]], size: Size
) -> Section:
    section = Section(
        "The same, seed by seed, fitted anew",
        "python benchmarks/run.py vbks_synthetic",
        f"`near`: q* of the true kernel and of those whose covariance comes within {KIN:.0%} of "
        "the true one (last table). `alike`: q* of it and of those whose local ELBO differs by "
        f"less than 1 nat and whose predictions by less than {CLOSE:.0%} of the data's deviation "
        f"(root mean square). ΔL: what its local ELBO is above the best of the others. `off`: how "
        "far its fitted covariance is from the true one (Frobenius norm, as a share); `rebuilt`: "
        f"kernels with a fitted covariance within {CLOSE:.0%}.",
        ("true kernel", "kernels", "seed", "q*", "softmax", "near", "alike", "best other",
         "ΔL nat", "off", "rebuilt", "at the limit", "dropped"),
    )  # fmt: skip
    for (name, kernels), found in runs.items():
        kin = {kernel for kernel, off in near[name].items() if off < KIN} | {name}
        for seed, one in enumerate(found):
            refit = one["refit"]
            last = dict(zip(refit["names"], refit["bounds"], strict=True))
            mine = last.pop(name, float("nan"))
            rival = max(last, key=lambda k: last[k]) if last else ""
            section.rows.append(
                (
                    *(name, kernels, seed, f"{of_refit(one, [name]):.3f}"),
                    f"{of_refit(one, [name], 'softmax'):.3f}",
                    f"{of_refit(one, kin):.3f}",
                    f"{of_refit(one, {*refit['alike'], name}):.3f}",
                    *(rival, f"{mine - last.get(rival, np.nan):.1f}"),
                    f"{100 * refit.get('off', np.nan):.0f} %",
                    ", ".join(refit["rebuilt"]) or "–",
                    f"{refit['limit']} of {len(refit['names'])}",
                    len(one["dropped"]),
                )
            )
    return section


def what_is_near(near: dict[str, dict[str, float]]) -> Section:
    section = Section(
        "Kernels that are nearly the true one",
        "python benchmarks/run.py vbks_synthetic",
        "How near the covariance of a kernel comes to the true one on 41 places of the domain, "
        "hyper-parameters chosen for that (no data): Frobenius norm of the difference, as a share "
        "of the true one's.",
        ("true kernel", "kernel", "distance"),
    )
    for name, found in near.items():
        for kernel, off in sorted(found.items(), key=lambda pair: pair[1])[:8]:
            section.rows.append((name, kernel, f"{100 * off:.2f} %"))
    return section


def draw(runs: dict[tuple[str, str], list[dict[str, Any]]], folder: Path) -> None:
    """The belief against the data used, as [Teng2020, Fig. 2]: kernels ever among the top two."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from gp_active_sensing.experiments.figures import COLOURS, MARKERS, STYLE

    sets = list(dict.fromkeys(kernels for _, kernels in runs))
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(
            len(sets), len(TRUTHS), figsize=(13.0, 3.3 * len(sets)), squeeze=False
        )
        for (name, kernels), found in runs.items():
            ax = axes[sets.index(kernels), [t.name for t in TRUTHS].index(name)]
            names = found[0]["names"]
            courses = {
                k: np.array([course(one, k, "probabilities") for one in found]) for k in names
            }
            means = {k: values.mean(axis=0) for k, values in courses.items()}
            table = np.array([means[k] for k in names])
            top = {names[i] for column in table.T for i in np.argsort(-column)[:2]}
            rivals = sorted(top - {name}, key=lambda k: -means[k].max())[:7]
            for i, kernel in enumerate([name, *rivals]):
                values = courses[kernel]
                share = 100.0 * np.array(found[0]["rows"]) / found[0]["rows"][-1]
                error = error_of(values)
                ax.errorbar(
                    share, means[kernel], error, marker=MARKERS[i], markersize=4, capsize=2,
                    color=COLOURS[i], linewidth=2.2 if i == 0 else 1.1, elinewidth=0.8,
                    label=f"{kernel} (true)" if i == 0 else kernel,
                )  # fmt: skip
            ax.set(
                title=f"true {name}, {kernels.upper()}, {len(found)} seeds",
                xlabel="data used  [%]",
                ylabel="kernel belief q*",
                ylim=(0.0, 1.0),
            )
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
        figure.savefig(folder / "vbks_synthetic.png", dpi=150)
        plt.close(figure)
