"""Tables and the picture of the belief over kernels beside their exact evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Section
from vbks_data import TRUTHS
from vbks_runs import error_of, shown

COMMAND = "python benchmarks/run.py vbks_evidence"
SIX = ("(PER+RQ)×LIN", "(PER+SE)×LIN", "LIN×RQ+LIN", "LIN×RQ+PER", "PER×LIN×RQ", "PER×LIN×SE")
"""Both true kernels and those of the 144 whose covariance comes nearest to one of them."""
Row = Mapping[str, Any]
BySeed = Mapping[int, Row]
Fits = Mapping[tuple[str, str, float, float], BySeed]
"""By true kernel, set of kernels, least noise and share of the data."""


def chances(values: Mapping[str, float]) -> dict[str, float]:
    """Probability of each kernel by its log evidence alone, all being as probable before."""
    logs = np.array(list(values.values()))
    weights = np.exp(logs - logs.max())
    return dict(zip(values, (weights / weights.sum()).tolist(), strict=True))


def lead(values: Mapping[str, float], name: str) -> tuple[float, str]:
    """What a kernel is above the best of the others [nat], and which that is."""
    others = {k: value for k, value in values.items() if k != name}
    rival = max(others, key=lambda k: others[k])
    return values[name] - others[rival], rival


def logs_of(one: Row, names: Sequence[str] | None = None) -> dict[str, float]:
    """Log evidence of the kernels, or of some of them."""
    table = one["kernels"]
    return {k: v["laplace"] for k, v in table.items() if names is None or k in names}


def of(one: Row, name: str, key: str) -> float:
    """What a fit says of a kernel; 0 of one that was dropped."""
    return float(one[key][one["names"].index(name)]) if name in one["names"] else 0.0


def bounds_of(one: Row) -> dict[str, float]:
    """Local ELBO of each kernel of a fit [nat]."""
    return dict(zip(one["names"], one["bounds"], strict=True))


def of_evidence(
    found: Mapping[tuple[str, float], BySeed], twelve: Sequence[str], inducing: int
) -> Section:
    """What exact evidence says."""
    section = Section(
        "What exact evidence says of the kernels",
        COMMAND,
        "1000 noise-free values; the model's σ_n is at least `noise` of their root mean square. "
        "Log evidence of the kernels of K12, and of (PER+SE)×LIN, by the Laplace approximation: "
        "exact log p(y|θ), θ "
        f"searched by the collapsed bound with {inducing} fixed inducing inputs, whose loss "
        "there is at most `lost` [nat]. `among 12`, `among six`: probability of the true kernel, "
        f"mean ± s.e. over the data sets; the six are {', '.join(SIX)}. `first`: data sets on "
        "which none of all has a larger one. `lead`: its log evidence less that of the best "
        "other one of all, data set by data set [nat].",
        (
            *("true kernel", "noise", "data sets", "among 12", "among six", "first"),
            *("lead, best other", "lost", "CPU s"),
        ),
    )
    for (name, floor), several in found.items():
        rows = list(several.values())
        leads = [lead(logs_of(one), name) for one in rows]
        section.rows.append(
            (
                *(name, f"{floor:g}", len(rows)),
                shown([chances(logs_of(one, twelve))[name] for one in rows], 2),
                shown([chances(logs_of(one, SIX))[name] for one in rows], 2),
                f"{sum(ahead > 0.0 for ahead, _ in leads)} of {len(rows)}",
                ", ".join(f"{ahead:+.1f} {rival}" for ahead, rival in leads),
                f"{max(v['lost'] for one in rows for v in one['kernels'].values()):.1f}",
                f"{sum(one['cpu_s'] for one in rows):.0f}",
            )
        )
    return section


def of_fits(
    fits: Fits,
    exact: Mapping[tuple[str, float], BySeed],
    weighed: tuple[str, Sequence[str]],
    about: str,
) -> Section:
    """Beliefs from all rows, with the exact evidence of the same data sets beside them.

    Args:
        fits: learned beliefs.
        exact: evidence by true kernel and least noise.
        weighed: the set of kernels whose evidence is known, and the kernels of it.
        about: how the beliefs were learned.
    """
    label, few = weighed
    section = Section(
        "The belief with enough inducing inputs",
        COMMAND,
        f"{about}, all rows at once. q* and the softmax of the local ELBOs of the true kernel, "
        f"mean ± s.e. over the data sets; `exact`: its probability by exact evidence among the "
        f"kernels of {label.upper()} on the same data sets, of which alone it is known; "
        "`first`: data sets on which it has the largest local ELBO; `ΔL`: "
        "its local ELBO less that of the best other kernel, data set by data set [nat]; `largest "
        "q*`, `largest softmax`: of any kernel, true or not, data set by data set.",
        (
            *("true kernel", "kernels", "noise", "data sets", "q*", "softmax(L)", "exact"),
            *("first", "ΔL, best other", "largest q*", "largest softmax", "converged", "CPU s"),
        ),
    )
    for (name, kernels, floor, share), several in fits.items():
        if share != 1.0:
            continue
        rows = list(several.values())
        beside = exact.get((name, floor), {})
        if kernels != label:
            beside = {}  # a probability among fewer kernels says nothing of these
        same = [chances(logs_of(beside[seed], few))[name] for seed in several if seed in beside]
        leads = [lead(bounds_of(one), name) for one in rows if name in one["names"]]
        section.rows.append(
            (
                *(name, kernels.upper(), f"{floor:g}", len(rows)),
                *(shown([of(one, name, key) for one in rows], 2) for key in ("q", "softmax")),
                shown(same, 2) if len(same) == len(rows) else "–",
                f"{sum(ahead > 0.0 for ahead, _ in leads)} of {len(rows)}",
                ", ".join(f"{ahead:+.1f} {rival}" for ahead, rival in leads),
                *(", ".join(f"{max(one[k]):.2f}" for one in rows) for k in ("q", "softmax")),
                f"{sum(r['converged'] for r in rows)} of {sum(len(r['names']) for r in rows)}",
                f"{sum(one['cpu_s'] for one in rows):.0f}",
            )
        )
    return section


def of_shares(fits: Fits, about: str) -> Section:
    """Belief in the true kernel against the share of the data."""
    shares = sorted({share for *_, share in fits})
    section = Section(
        "Belief against the share of the data",
        COMMAND,
        f"{about}, learned from the first rows, each share by itself. One data set, as the paper "
        "shows it, and the mean ± s.e. over those that have all shares; –: not learned.",
        ("true kernel", "", "data sets", *(f"{100 * share:g} %" for share in shares)),
    )
    for (name, kernels, floor), table in by_share(fits).items():
        one, whole = shown_sets(table, shares)
        for key, label in (("q", "q*"), ("softmax", "softmax(L)")):
            title = f"{label}, {kernels.upper()}, noise {floor:g}"
            first = [table.get(share, {}).get(one) for share in shares]
            cells = ("–" if found is None else f"{of(found, name, key):.2f}" for found in first)
            section.rows.append((name, f"{title}, data set {one}", 1, *cells))
            if len(whole) > 1:
                means = (shown([of(table[x][s], name, key) for s in whole], 2) for x in shares)
                section.rows.append((name, title, len(whole), *means))
    return section


def shown_sets(table: Mapping[float, BySeed], shares: Sequence[float]) -> tuple[int, list[int]]:
    """Return the data set with most of the shares, the first of several, and those with all."""
    counts = {s: sum(s in several for several in table.values()) for s in table.get(1.0, {})}
    one = min(counts, key=lambda s: (-counts[s], s))
    return one, [s for s, count in counts.items() if count == len(shares)]


def by_share(fits: Fits) -> dict[tuple[str, str, float], dict[float, BySeed]]:
    """Return the fits of each truth, set of kernels and noise that has more than one share."""
    found: dict[tuple[str, str, float], dict[float, BySeed]] = {}
    for (name, kernels, floor, share), several in fits.items():
        found.setdefault((name, kernels, floor), {})[share] = several
    return {key: table for key, table in found.items() if len(table) > 1 and 1.0 in table}


def of_starts(found: Mapping[tuple[int, bool], BySeed], about: str) -> Section:
    """What many starts cost and bring, with the race and without it."""
    section = Section(
        "Many starts, and dropping those that are behind",
        COMMAND,
        f"{about}. Kernels {', '.join(SIX)} of the first true kernel's data sets. `race`: the "
        "worse half of a kernel's starts is dropped three times (`vbks.race`). `CPU`: processor "
        "time over that of 16 starts without the race. `behind`: the largest local ELBO of a "
        "kernel that any row found less this row's [nat], mean and largest over kernels and data "
        "sets.",
        ("starts", "race", "data sets", "CPU s", "CPU", "behind, mean", "behind, largest"),
    )
    if not found:
        return section
    most: dict[tuple[int, str], float] = {}
    for by in found.values():
        for seed, one in by.items():
            for name, bound in bounds_of(one).items():
                most[seed, name] = max(bound, most.get((seed, name), bound))
    full = found.get((16, False), {})
    for (starts, race), by in found.items():
        behind = [most[seed, k] - v for seed, one in by.items() for k, v in bounds_of(one).items()]
        shares = [one["cpu_s"] / full[seed]["cpu_s"] for seed, one in by.items() if seed in full]
        section.rows.append(
            (
                *(starts, "yes" if race else "no", len(by)),
                f"{sum(one['cpu_s'] for one in by.values()):.0f}",
                f"{np.mean(shares):.2f}" if shares else "",
                *(f"{np.mean(behind):.2f}", f"{max(behind):.2f}"),
            )
        )
    return section


def of_inducing(found: Mapping[tuple[str, float], BySeed]) -> Section:
    """How many inducing inputs the true kernel needs."""
    counts = list(next(iter(next(iter(found.values())).values()))) if found else []
    section = Section(
        "How many inducing inputs hold the true kernel",
        COMMAND,
        "Exact log p(y|θ) at the true hyper-parameters less its collapsed bound with so many "
        "evenly spread inducing inputs [nat], mean ± s.e. over the data sets.",
        ("true kernel", "noise", "data sets", *(f"M = {count}" for count in counts)),
    )
    for (name, floor), several in found.items():
        cells = (shown([one[count] for one in several.values()], 1) for count in counts)
        section.rows.append((name, f"{floor:g}", len(several), *cells))
    return section


def draw(
    fits: Fits,
    exact: Mapping[tuple[str, float], BySeed],
    weighed: tuple[str, Sequence[str]],
    folder: Path,
) -> None:
    """Draw the belief against the share of the data: by set of kernels, one data set and means."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from gp_active_sensing.experiments.figures import STYLE

    tables = by_share(fits)
    if not tables:
        return
    names = [truth.name for truth in TRUTHS]
    panels: dict[tuple[str, float, bool], dict[str, list[int]]] = {}
    for (name, kernels, floor), table in tables.items():
        one, whole = shown_sets(table, sorted(table))
        panels.setdefault((kernels, floor, False), {})[name] = [one]
        if len(whole) > 1:
            panels.setdefault((kernels, floor, True), {})[name] = whole
    with mpl.rc_context(STYLE):
        size = 13.0, 0.4 + 3.1 * len(panels)
        figure, axes = plt.subplots(len(panels), len(names), figsize=size, squeeze=False)
        for row, ((kernels, floor, _), by_truth) in enumerate(panels.items()):
            for axis, name in zip(axes[row], names, strict=True):
                if name not in by_truth:
                    axis.set_axis_off()
                    continue
                known = exact.get((name, floor), {}) if kernels == weighed[0] else {}
                table = tables[name, kernels, floor]
                _panel(axis, name, table, by_truth[name], known, weighed[1])
                seeds = by_truth[name]
                one = len(seeds) == 1
                what = f"data set {seeds[0]}" if one else f"mean of {len(seeds)} data sets"
                axis.set_title(f"true {name}, {kernels.upper()}, noise {floor:g}: {what}")
        note = f"open markers at the right: by exact evidence among {weighed[0].upper()}"
        figure.suptitle(note, fontsize=10)
        figure.savefig(folder / "vbks_evidence.png", dpi=150)
        plt.close(figure)


def _panel(
    axis: Any,
    name: str,
    table: Mapping[float, BySeed],
    seeds: Sequence[int],
    known: BySeed,
    few: Sequence[str],
) -> None:
    """Draw the belief in the true kernel and its four best rivals, mean over the data sets."""
    from gp_active_sensing.experiments.figures import COLOURS, MARKERS

    shares = [share for share in sorted(table) if all(seed in table[share] for seed in seeds)]
    courses = {
        k: np.array([[of(table[x][s], k, "q") for x in shares] for s in seeds])
        for k in dict.fromkeys([name, *table[1.0][seeds[0]]["names"]])
    }
    means = {k: values.mean(axis=0) for k, values in courses.items()}
    rivals = sorted(set(means) - {name}, key=lambda k: -means[k].max())[:4]
    for i, kernel in enumerate([name, *rivals]):
        axis.errorbar(
            [100.0 * share for share in shares], means[kernel],
            error_of(courses[kernel]) if len(seeds) > 1 else None,
            marker=MARKERS[i], markersize=4, capsize=2, color=COLOURS[i],
            linewidth=2.2 if i == 0 else 1.1, elinewidth=0.8,
            label=f"{kernel} (true)" if i == 0 else kernel,
        )  # fmt: skip
        exact = [chances(logs_of(known[s], few)).get(kernel) for s in seeds if s in known]
        found = [chance for chance in exact if chance is not None]
        if found:
            axis.plot(
                104.0, np.mean(found), marker=MARKERS[i], markersize=8,
                markerfacecolor="none", color=COLOURS[i], linestyle="none",
            )  # fmt: skip
    axis.set(xlabel="data used  [%]", ylabel="belief q*", ylim=(-0.03, 1.03), xlim=(5.0, 108.0))
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
