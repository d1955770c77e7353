"""A probe that knows yesterday's log by a belief over kernels, and one that knows nothing.

python benchmarks/bench_vbks_probe.py [--smoke] [--kept DIR] [--pictures DIR]
"""

from __future__ import annotations

import logging
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Section
from network_data import data_folder
from vbks_fields import LOG, NOISE, SIDE, Field, informed, kinds
from vbks_runs import Kept, Report, error_of, run_alone, shown

from gp_active_sensing.belief import BeliefConfig, belief_on
from gp_active_sensing.kernel_model import KernelModel, write_model
from gp_active_sensing.kernels.grammar import kernel_set
from gp_active_sensing.learning.kernel_selection.config import VbksConfig
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.planning import build_policy
from gp_active_sensing.records.metrics import rmspe
from gp_active_sensing.types import Budget, PlanLimit, Reading

KERNELS = "level2"
POLICY = {"name": "bal", "horizon": 2}
FREE_POLICY = {"name": "max_entropy"}
EXPANSIONS = 100
ARMS = ("default", "learned SE", "model", "most probable kernel", "true kernel")
"""Every arm: what the probe knows as it begins."""
BASE = "default"


@dataclass(frozen=True)
class Size:
    """How much is done."""

    fields: int = 20
    readings: tuple[int, ...] = (10, 20, 40)
    kernels: str = KERNELS
    iterations: int = 300
    restarts: int = 2
    inducing: int = 40


FULL = Size()
SMOKE = Size(1, (4, 8), "SE,PER+SE", 10, 1, 8)


def config(size: Size, number: int) -> VbksConfig:
    return VbksConfig(
        inducing=size.inducing,
        batch=512,
        iterations=size.iterations,
        restarts=size.restarts,
        seed=number,
    )


def arms(
    field: Field, size: Size, number: int, folder: Path
) -> tuple[dict[str, BeliefConfig], KernelModel]:
    """The beliefs that the probe begins with, and what was learned of yesterday."""
    from gp_active_sensing.learning import PriorReadings, belief_section, learn
    from gp_active_sensing.learning.kernel_selection import select_kernels

    model = select_kernels(field.rows(), kernel_set(size.kernels), config(size, number))
    write_model(folder / "model.npz", model)
    readings = PriorReadings(field.places, field.log, "yesterday")
    smooth = BeliefConfig(kernel="se")
    found = {
        "default": BeliefConfig(),
        "learned SE": belief_section(learn(smooth, field.topology, readings), smooth),
        "model": BeliefConfig(model=str(folder / "model.npz")),
        "most probable kernel": BeliefConfig(model=str(folder / "model.npz"), kernels=1),
    }
    if field.truth is not None:
        write_model(folder / "truth.npz", informed(field.truth))
        found["true kernel"] = BeliefConfig(model=str(folder / "truth.npz"))
    return found, model


def mission(field: Field, belief: BeliefConfig, size: Size, number: int) -> list[float]:
    """RMSPE after each number of readings."""
    loop = SensingLoop(
        field.topology,
        belief_on(belief, field.topology),
        build_policy(FREE_POLICY if field.truth is None else POLICY),
        budget=Budget(readings=max(size.readings)),
        seed=number,
        limit=PlanLimit(expansions=EXPANSIONS),
    )
    at, found = field.start, []
    for stage in range(max(size.readings)):
        if stage:
            plan = loop.ask(at)
            if plan.waypoint is None:
                raise RuntimeError(plan.reason)
            at = plan.waypoint
        loop.tell([Reading(stage, at, float(field.readings[at]))])
        if stage + 1 in size.readings:
            mean, _ = loop.belief.predict()
            found.append(float(rmspe(mean, field.values, loop.belief.observed) or 0.0))
    return found


def one_field(field: Field, size: Size, number: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        beliefs, model = arms(field, size, number, Path(folder))
        errors = {name: mission(field, belief, size, number) for name, belief in beliefs.items()}
    top = list(zip(model.names, model.belief.probabilities.tolist(), strict=True))[:3]
    return {"errors": errors, "top": top, "deviation": float(field.values.std())}


def run(*, smoke: bool = False, pictures: Path | None = None) -> Report:
    logging.getLogger("gp_active_sensing").setLevel(logging.ERROR)
    size = SMOKE if smoke else FULL
    kept = Kept("vbks_probe" + "_smoke" * smoke)
    found: dict[str, list[dict[str, Any]]] = {}
    makers = kinds(data_folder())
    for number in range(size.fields):
        for kind, maker in makers.items():
            key = f"{kind} | {number} | {size.kernels} | {size.iterations} × {size.restarts}"
            one = kept.get(key, lambda m=maker, k=number: one_field(m(k), size, k))
            found.setdefault(kind, []).append(one)
    if pictures is not None:
        draw(found, size, pictures)
    return Report([table(found, size), chosen(found)])


def table(found: dict[str, list[dict[str, Any]]], size: Size) -> Section:
    section = Section(
        "A probe with yesterday's log, and one without",
        "GPAS_DATA=… python benchmarks/run.py vbks_probe",
        f"{size.fields} fields of each kind, another draw, Monday or day being yesterday. Drawn "
        f"fields: {SIDE} × {SIDE} m, 8-neighbour moves, bal N' = 2 with {EXPANSIONS} expansions a "
        f"decision, noise {NOISE:g}, {LOG} readings at random places in the log. San Jose: 325 "
        "sensors at the 6 coordinates of the network's embedding, all of the Monday one (or two) "
        "weeks before in the log; Intel lab: 50 motes, in the log the same hour of the day before; "
        "both max_entropy with a free choice. `default`: `BeliefConfig()`; `learned SE`: "
        f"`gp-active-sensing learn`; `model`: VBKS over {len(kernel_set(size.kernels))} kernels, "
        f"{size.inducing} inducing inputs, {size.iterations} iterations at most of "
        f"{size.restarts} starts, the loop's own number of kernels; `true kernel`: its "
        "hyper-parameters in a model by hand. All arms begin at the same place of the same field. "
        "RMSPE over the places not read, mean ± s.e. over the fields; in brackets the paired "
        "difference to the default and the fields on which it is smaller. Deviation: of the field.",
        ("fields", "deviation", "begins with", *(f"{n} readings" for n in size.readings)),
    )
    for kind, fields in found.items():
        for arm in ARMS:
            if arm not in fields[0]["errors"]:
                continue
            values = np.array([one["errors"][arm] for one in fields])
            base = np.array([one["errors"][BASE] for one in fields])
            cells = []
            for k in range(len(size.readings)):
                text = shown(values[:, k])
                if arm != BASE:
                    less = int((values[:, k] < base[:, k]).sum())
                    gain = shown(values[:, k] - base[:, k])
                    text += f" ({gain}; {less} of {len(fields)})"
                cells.append(text)
            deviation = float(np.mean([one["deviation"] for one in fields]))
            section.rows.append((kind, f"{deviation:.2f}", arm, *cells))
    return section


def chosen(found: dict[str, list[dict[str, Any]]]) -> Section:
    """Which kernels the logs of yesterday gave."""
    section = Section(
        "What yesterday's logs said",
        "GPAS_DATA=… python benchmarks/run.py vbks_probe",
        "The most probable kernel of each log with its q*, and on how many fields.",
        ("fields", "most probable kernels"),
    )
    for kind, fields in found.items():
        first: dict[str, list[float]] = {}
        for one in fields:
            name, q = one["top"][0]
            first.setdefault(name, []).append(q)
        order = sorted(first.items(), key=lambda pair: -len(pair[1]))
        section.rows.append(
            (kind, ", ".join(f"{name} {len(q)} × (q* {np.mean(q):.2f})" for name, q in order))
        )
    return section


def draw(found: dict[str, list[dict[str, Any]]], size: Size, folder: Path) -> None:
    """RMSPE less that of the default, against readings, a panel a kind of field."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from gp_active_sensing.experiments.figures import COLOURS, MARKERS, STYLE

    at = np.arange(len(size.readings))
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(found), figsize=(2.6 * len(found), 3.1), squeeze=False)
        for ax, (kind, fields) in zip(axes[0], found.items(), strict=True):
            base = np.array([one["errors"][BASE] for one in fields])
            ax.axhline(0.0, color=COLOURS[0], linewidth=1.5, label=BASE)
            for i, arm in enumerate(ARMS):
                if arm == BASE or arm not in fields[0]["errors"]:
                    continue
                gain = np.array([one["errors"][arm] for one in fields]) - base
                ax.errorbar(
                    at + 0.09 * (i - 2.5), gain.mean(axis=0), error_of(gain), capsize=2,
                    marker=MARKERS[i], markersize=4, color=COLOURS[i], linewidth=1.2, label=arm,
                )  # fmt: skip
            ax.set_xticks(at, [str(n) for n in size.readings])
            ax.set(title=f"{kind}, {len(fields)} fields", xlabel="readings")
        axes[0, 0].set_ylabel(f"RMSPE less that of the {BASE}")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        figure.savefig(folder / "vbks_probe.png", dpi=150)
        plt.close(figure)


if __name__ == "__main__":
    sys.exit(run_alone(run, __doc__))
