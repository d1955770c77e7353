"""⟨α,ε⟩-BAL beside BoTorch, in one run; nothing is told to either about the field.

    python benchmarks/botorch/compare.py FOLDER [--record NAME]

Run it with the project's environment. BoTorch gets one of its own, made under FOLDER from
requirements.txt (torch for the processor alone, a few hundred MB) if it is not there yet.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from gp_active_sensing.util.process import one_blas_thread  # noqa: E402

one_blas_thread()  # before anything loads numpy

import numpy as np  # noqa: E402
from common import Section  # noqa: E402
from run import commit, machine  # noqa: E402
from untuned_missions import NOISE, SIGNAL, draw, grid  # noqa: E402

from gp_active_sensing.belief import BeliefConfig, build_belief  # noqa: E402
from gp_active_sensing.loop import SensingLoop  # noqa: E402
from gp_active_sensing.planning.bal import Bal  # noqa: E402
from gp_active_sensing.planning.greedy import MaxEntropy  # noqa: E402
from gp_active_sensing.records.metrics import nlpd, rmspe  # noqa: E402
from gp_active_sensing.types import PlanLimit, Reading  # noqa: E402
from gp_active_sensing.util.process import versions  # noqa: E402

ELL, FIELDS, READINGS, SEEDS, STAGES, EXPANSIONS = 3.0, (0, 1, 2), 10, 5, (3, 8), 5
OURS = {
    f"bal N'=3, {EXPANSIONS} expansions": Bal(horizon=3),
    "bal N'=2, gap 0.1 nat": Bal(horizon=2),
    "max_entropy": MaxEntropy(),
}
THEIRS = ("qMultiStepLookahead", "qNIPV", "qNIPV, no prior")


def our_plan(policy: Any, told: list[int], field: int, seed: int) -> tuple[Any, Any, float]:
    """Belief, plan and processor seconds, the belief's part included."""
    truth, noise, _ = draw(ELL, field)
    topology = grid("free")
    belief = build_belief(BeliefConfig(), topology.features, topology.feature_names)
    limit = PlanLimit(expansions=EXPANSIONS) if getattr(policy, "horizon", 1) > 2 else PlanLimit()
    loop = SensingLoop(topology, belief, policy, seed=seed, limit=limit)
    loop.tell([Reading(i, p, float(truth[p] + noise[p])) for i, p in enumerate(told[:-1])])
    before = time.process_time()
    loop.tell([Reading(len(told), told[-1], float(truth[told[-1]] + noise[told[-1]]))])
    plan = loop.ask(told[-1])
    return loop.belief, plan, time.process_time() - before


def ours(policy: Any, field: int) -> dict[str, Any]:
    told, seconds, gaps = [draw(ELL, field)[2]], [], []
    while len(told) < READINGS:
        _, plan, spent = our_plan(policy, told, field, 0)
        seconds.append(spent)
        gaps.append(plan.gap)
        told.append(plan.waypoint)
    belief, _, _ = our_plan(MaxEntropy(), told, field, 0)
    mean, variance = belief.predict()
    lengths = np.array([h.length_scales[0] for h in belief.hyperparameters])
    fitted = [float(np.exp(belief.weights @ np.log(lengths)))]
    return {
        **{"told": told, "seconds": seconds, "mean": mean, "variance": variance},
        **{"fitted": [fitted], "gaps": gaps},
    }


def theirs(python: Path, field: int, **task: Any) -> dict[str, Any]:
    truth, noise, start = draw(ELL, field)
    task |= {"positions": grid("free").positions.tolist(), "readings": (truth + noise).tolist()}
    task |= {"start": start, "count": READINGS, "seed": 0}
    done = subprocess.run(
        [python, HERE / "theirs.py"],
        check=False,
        input=json.dumps(task),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{python} theirs.py failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def quality(found: dict[str, Any], field: int) -> dict[str, float]:
    """RMSE and NLPD of the method's own map, and RMSE of its readings under the true λ."""
    truth, noise, _ = draw(ELL, field)
    seen = np.zeros(len(truth), dtype=bool)
    seen[found["told"]] = True
    mean, variance = np.asarray(found["mean"]), np.asarray(found["variance"])
    config = BeliefConfig((ELL,), signal_std=(SIGNAL,), noise_std=(NOISE,), mean_std=0.0)
    informed = build_belief(config, grid("free").features)
    for place in found["told"]:
        informed.observe(place, float(truth[place] + noise[place]))
    return {
        "rmse": rmspe(mean, truth, seen) or 0.0,
        "nlpd": nlpd(mean, variance, truth, seen) or 0.0,
        "truth": rmspe(informed.predict()[0], truth, seen) or 0.0,
    }


def environment(folder: Path) -> Path:
    """Return the Python of BoTorch's environment, made if need be."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        sys.stderr.write(f"making {folder / 'venv'} …\n")
        venv.create(folder / "venv", with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "-r", HERE / "requirements.txt"]
        subprocess.run(pip, check=True)
    return python


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="of BoTorch's environment")
    parser.add_argument("--record", metavar="NAME", help="write benchmarks/reports/NAME.md")
    options = parser.parse_args()
    python = environment(options.folder)
    started = time.perf_counter()
    names = ("torch", "botorch", "gpytorch")
    code = (
        "import importlib.metadata as m; "
        f"print(*(n + ' ' + m.version(n) for n in {names}), sep=', ')"
    )
    their_versions = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True
    )
    rows: dict[str, list[dict[str, Any]]] = {}
    placed: dict[str, list[list[int]]] = {}
    for name in (*OURS, *THEIRS):
        sys.stderr.write(f"{name} …\n")
        if name in OURS:
            rows[name] = [ours(OURS[name], field) for field in FIELDS]
        else:
            rows[name] = [theirs(python, field, kind="run", method=name) for field in FIELDS]
    told = rows[next(iter(OURS))][0]["told"]  # everyone repeats on the same readings
    for name in rows:
        sys.stderr.write(f"{name}, again …\n")
        placed[name] = []
        for stage in STAGES:
            if name in OURS:
                again = [our_plan(OURS[name], told[:stage], FIELDS[0], s)[1] for s in range(SEEDS)]
                placed[name].append([plan.waypoint for plan in again])
            else:
                task = {"kind": "repeat", "method": name, "told": told[:stage]}
                found = theirs(python, FIELDS[0], seeds=list(range(SEEDS)), **task)
                placed[name].append(found["places"])
    took = time.perf_counter() - started
    report = written(rows, placed, took, their_versions.stdout.strip())
    sys.stdout.write(report)
    if options.record:
        target = HERE.parent / "reports" / f"{options.record}.md"
        target.write_text(report, encoding="utf-8")
        sys.stderr.write(f"written: {target}\n")
    return 0


def written(
    rows: dict[str, list[dict[str, Any]]],
    placed: dict[str, list[list[int]]],
    took: float,
    their_versions: str,
) -> str:
    found = ", ".join(f"{name} {version}" for name, version in versions().items())
    head = f"# Beside BoTorch\n\nCommit {commit()}; {machine()}; {found}; {their_versions}.\n\n"
    section = Section(
        f"{len(FIELDS)} fields × {READINGS} readings, free choice of 400 places",
        "python benchmarks/botorch/compare.py FOLDER",
        REMARKS.format(took=took / 60.0, deviations=deviations()),
        (
            "method", "s a decision: median", "largest", "over the first row",
            "different places of 5 seeds", "RMSE", "NLPD", "RMSE, true λ", "ℓ at the end m",
            "bound", "belief over ℓ",
        ),
    )  # fmt: skip
    base = np.median(np.concatenate([r["seconds"] for r in rows[next(iter(OURS))]]))
    for name, runs in rows.items():
        seconds = np.concatenate([r["seconds"] for r in runs])
        marks = [quality(run, field) for run, field in zip(runs, FIELDS, strict=True)]
        own = name in OURS
        gap = f"gap {np.median(np.concatenate([r['gaps'] for r in runs])):.2f} nat" if own else "no"
        section.rows.append(
            (
                *(name, float(np.median(seconds)), float(seconds.max())),
                f"{np.median(seconds) / base:.2g} ×",
                ", ".join(
                    f"{len(set(p))} after {s}" for p, s in zip(placed[name], STAGES, strict=True)
                ),
                *(each(m[key] for m in marks) for key in ("rmse", "nlpd", "truth")),
                "; ".join("/".join(f"{v:.1f}" for v in r["fitted"][-1]) for r in runs),
                *(gap, "yes" if own else "no"),
            )
        )
    return head + section.markdown()


def each(values: Any) -> str:
    found = list(values)
    return f"{np.mean(found):.2f} ({', '.join(f'{v:.2f}' for v in found)})"


def deviations() -> str:
    return ", ".join(f"{draw(ELL, field)[0].std():.2f}" for field in FIELDS)


REMARKS = """\
Fields drawn with ℓ = 3 m, σ² = 1, noise 0.1 on 20 × 20 m with a 1-m grid (the first fields of \
`untuned`, of deviation {deviations}); the first reading is at the start, the same for all, the \
other 9 are chosen. Any place may be next: BoTorch knows no roads and no neighbours. Processor \
seconds, one thread each, from a reading to the next place: the belief's update and the plan, or \
the fit and the optimisation. `qMultiStepLookahead` looks 3 decisions ahead (4 fantasies a step, \
posterior standard deviation as the value of each, 4 restarts from 64 samples, at most 50 \
iterations); \
`qNIPV` is qNegIntegratedPosteriorVariance over 256 points. Both optimise over the plane; their \
answer is moved to the nearest unread place. `SingleTaskGP` is fitted after every reading as \
BoTorch ships it, which is not plain maximum likelihood: a log-normal prior keeps its two \
length-scales in place; `no prior` is one length-scale, signal and noise by maximum likelihood. \
Ours knows nothing either: `BeliefConfig()`. `different places`: how many of 5 runs that differ in \
the seed only choose differently, on the same 3 and the same 8 readings of field 0. RMSE and NLPD \
at the places not read, against the noise-free field: mean (each field); `true λ`: the same \
readings under the hyper-parameters the field was drawn with. ℓ at the end: geometric mean of the \
belief, or the fit (one per axis). All of it took {took:.1f} min. Three fields tell speed and \
reproducibility, not which map is better."""


if __name__ == "__main__":
    sys.exit(main())
