"""A million rows from the command line: seconds, memory of all processes, what was learned.

    python benchmarks/bench_vbks_million.py [--smoke] [--kept DIR]

The log is written first; nothing of it is in memory as a whole.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Section
from vbks_data import NOISE, big_log, big_pieces
from vbks_runs import Kept, Report, run_alone, scores

COMMAND = "python benchmarks/run.py vbks_million"


@dataclass(frozen=True)
class Size:
    """How much is learned from."""

    rows: int = 1_000_000
    every: int = 100
    """Of the rows, each so manieth is screened with."""
    screened: str = "k144"
    screen: tuple[int, int] = (32, 300)
    """Inducing inputs and steps at most, of the screening."""
    top: int = 12
    inducing: int = 64
    batch: int = 256
    iterations: int = 2000
    tested: int = 20_000


FULL = Size()
SMOKE = Size(2000, 10, "SE,LIN,PER", (8, 5), 2, 8, 64, 5, 500)


def watched(arguments: list[str], folder: Path) -> dict[str, float]:
    """Run our command line; seconds, and the most that it and its children had resident [MB]."""
    import psutil

    code = "import sys; from gp_active_sensing.cli import main; sys.exit(main())"
    started = time.perf_counter()
    with (folder / "said.txt").open("a", encoding="utf-8") as said:
        said.write(f"$ gp-active-sensing {' '.join(arguments)}\n")
        said.flush()
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=said, stderr=subprocess.STDOUT, cwd=folder, env=environment,
        )  # fmt: skip
        peak = alone = 0.0
        while process.poll() is None:
            resident, own = 0, 0
            try:
                root = psutil.Process(process.pid)
                for one in (root, *root.children(recursive=True)):
                    memory = one.memory_full_info()
                    resident += memory.rss
                    own += memory.pss
            except psutil.Error:
                pass
            peak, alone = max(peak, resident / 1e6), max(alone, own / 1e6)
            time.sleep(0.25)
    if process.returncode:
        raise RuntimeError((folder / "said.txt").read_text(encoding="utf-8")[-3000:])
    return {"seconds": time.perf_counter() - started, "rss": peak, "pss": alone}


def subset(log: Path, target: Path, every: int) -> int:
    """Write each so manieth row of a log."""
    count = 0
    with log.open(encoding="utf-8") as lines, target.open("w", encoding="utf-8") as out:
        for number, line in enumerate(lines):
            if number == 0 or number % every == 0:
                out.write(line)
                count += number > 0
    return count


def learned(size: Size, jobs: int) -> dict[str, Any]:
    """Write the log, screen kernels on some of it, learn the best ones from all of it."""
    from gp_active_sensing.kernel_model import read_model

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, few = folder / "log.csv", folder / "few.csv"
        big_log(log, size.rows)
        found["megabytes"] = log.stat().st_size / 1e6
        found["few"] = subset(log, few, size.every)
        columns = ["--inputs", "x,y,hours", "--value", "temp", "--restarts", "2"]
        M, steps = size.screen
        found["screening"] = watched(
            [
                *("learn", str(few), *columns, "--kernels", size.screened, "--inducing", str(M)),
                *("--iterations", str(steps), "--hyperparameters", "point", "--top", str(size.top)),
                *("--jobs", str(jobs), "--out", "screened.npz"),
            ],
            folder,
        )
        kernels = read_model(folder / "screened.npz").names
        found["kernels"] = list(kernels)
        found["learning"] = watched(
            [
                *("learn", str(log), *columns, "--kernels", ",".join(kernels)),
                *("--inducing", str(size.inducing), "--batch", str(size.batch)),
                *("--iterations", str(size.iterations), "--jobs", str(jobs)),
                *("--stages", "0.01,0.1,1", "--out", "model.npz"),
            ],
            folder,
        )
        model = read_model(folder / "model.npz")
        test = np.vstack(list(big_pieces(size.tested, seed=0, piece=size.tested, draws=1)))
        # Places and noise of their own, at times all over those of the log, of the same field.
        X, y = test[:, :3], test[:, 3]
        found["scores"] = scores(y, *model.predict(X, noisy=True))
        found["alone"] = scores(y, *model.predict(X, noisy=True, kernels=[0]))
        found["deviation"] = float(y.std())
        found["top"] = [
            (fit.name, float(q), fit.bound, fit.iterations, fit.outcome)
            for fit, q in zip(model.fits, model.belief.probabilities, strict=True)
        ]
        found["course"] = [
            [float(n), max(zip(row.tolist(), model.history.names, strict=True))[1]]
            for n, row in zip(model.history.rows, model.history.probabilities, strict=True)
        ]
    return found


def run(*, smoke: bool = False) -> Report:
    size = SMOKE if smoke else FULL
    kept = Kept("vbks_million" + "_smoke" * smoke)
    jobs = 1 if smoke else 2
    found = kept.get(f"{size}", lambda: learned(size, jobs))
    total = found["screening"]["seconds"] + found["learning"]["seconds"]
    section = Section(
        "A million rows",
        COMMAND,
        f"`gp-active-sensing learn` on a CSV of {size.rows:,} rows (x, y, hours → temp, "
        f"{found['megabytes']:.0f} MB; a drawn field that changes with the day, noise "
        f"{NOISE:g} °C), {jobs} processes of one thread. First {size.screened} are screened on "
        f"{found['few']:,} rows ({size.screen[0]} inducing inputs, {size.screen[1]} steps at most, "
        f"2 starts), then the {size.top} most probable ones learn from all rows: {size.inducing} "
        f"inducing inputs, mini-batches of {size.batch}, {size.iterations} steps at most in each "
        "of three stages (1, 10 and 100 % of the rows), full q(θ), 2 starts. Memory: the largest "
        "sum over all processes, four times a second; RSS counts what processes share, such as "
        "pages of the file with the rows, once a process, PSS once.",
        ("part", "s", "RSS MB", "PSS MB"),
    )
    for part in ("screening", "learning"):
        one = found[part]
        section.rows.append((part, *(f"{one[key]:.0f}" for key in ("seconds", "rss", "pss"))))
    section.rows.append(("both", f"{total:.0f}", "", ""))
    result = Section(
        "What was learned of them",
        COMMAND,
        f"{size.tested:,} new readings of the same field, deviation "
        f"{found['deviation']:.2f} °C: RMSE {found['scores']['rmse']:.3f} °C (noise {NOISE:g}), "
        f"NLPD {found['scores']['nlpd']:.3f}, in 50, 90, 95 % intervals "
        f"{', '.join(f'{100 * c:.1f} %' for c in found['scores']['covered'])}; the most probable "
        f"kernel alone {found['alone']['rmse']:.3f} °C, {found['alone']['nlpd']:.3f}. Most "
        "probable after each stage: "
        + "; ".join(f"{n:,.0f} rows {name}" for n, name in found["course"])
        + ".",
        ("kernel", "q*", "local ELBO nat", "behind", "steps", "outcome"),
    )
    best = max(bound for _, _, bound, _, _ in found["top"])
    for name, q, bound, steps, outcome in found["top"]:
        behind = f"{best - bound:.0f}"
        result.rows.append((name, f"{q:.3f}", f"{bound:.0f}", behind, steps, outcome))
    return Report([section, result])


if __name__ == "__main__":
    sys.exit(run_alone(run, __doc__))
