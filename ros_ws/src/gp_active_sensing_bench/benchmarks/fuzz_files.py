"""Read damaged files of one format, and measure outcome, time and memory.

``python fuzz_files.py FORMAT COUNT SEED`` prints the results as JSON. Each format needs its own
process for the measurement of memory.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import CORE

sys.path.insert(0, str(CORE))  # for the package `tests`

from gp_active_sensing.errors import ActiveSensingError
from tests.fuzzing import absurd_values
from tests.unit.topology.loaders.test_files import MAKERS, damaged

HANG = 5.0
"""A file that takes more processor time than this [s] counts as a hang."""
LIMIT = 60
"""Longest wall-clock time for a file [s]."""
SHIPPED = CORE / "sim"
WORD = re.compile(rb"[\w.+-]+")
ABSURD = (
    b"0", b"-1", b"1e308", b"-1e308", b"1e-320", b"99999999999999999999", b"nan", b"inf", b"null",
    b"true", b"0.5", b"7", b"x", b"",
)  # fmt: skip
Try = Callable[[random.Random], None]


class Whole(random.Random):
    """Marker in place of a random generator: the file stays undamaged."""


class GivenUp(BaseException):
    """Error for a file that took too long."""


def _map(kind: str, folder: Path) -> Try:
    from gp_active_sensing.commands.map_survey import survey_roads
    from gp_active_sensing.topology import load_roads

    path = MAKERS[kind](folder)
    data = path.read_bytes()

    def attempt(rng: random.Random) -> None:
        path.write_bytes(spoilt(data, rng))
        survey_roads(load_roads(path))

    return attempt


def _ascii_grid(folder: Path) -> Try:
    from gp_active_sensing.topology.loaders.rasters import of_ascii

    path = folder / "field.asc"
    rows = "\n".join(" ".join(str(r * 7 + c) for c in range(6)) for r in range(5))
    head = "ncols 6\nnrows 5\nxllcorner 0.0\nyllcorner 0.0\ncellsize 10.0\nNODATA_value -9999\n"
    data = (head + rows + "\n").encode()

    def attempt(rng: random.Random) -> None:
        path.write_bytes(spoilt(data, rng))
        of_ascii(path)

    return attempt


def _yaml(folder: Path) -> Try:
    from gp_active_sensing.sim import load_scenario

    texts = [path.read_bytes() for path in sorted(SHIPPED.glob("*.yaml"))]
    path = folder / "scenario.yaml"

    def attempt(rng: random.Random) -> None:
        path.write_bytes(spoilt(rng.choice(texts), rng))
        load_scenario(str(path))

    return attempt


def _overrides(folder: Path) -> Try:
    from gp_active_sensing.sim import load_scenario

    keys = ["seed", "map.kind", "field.length_scale", "budget.readings", "policy", "a.b.c", "", "."]
    parts = [
        "[", "]", "{", "}", "&a", "*a", ":", ",", "- ", "!!python/name:os.system", "1e999", ".nan",
        "0x7fffffffffffffffff", "2024-13-45", "'", '"', "\ud800", "\x00", "null", "<<:", "? ", "|",
        "9" * 400, "1:" * 40 + "1", "[" * 200, "yes", "~",
    ]  # fmt: skip

    def attempt(rng: random.Random) -> None:
        if isinstance(rng, Whole):
            return
        value = "".join(rng.choice(parts) for _ in range(rng.randrange(1, 12)))
        if rng.random() < 0.3:
            value = str(rng.choice(absurd_values()))
        load_scenario("lake", overrides=[f"{rng.choice(keys)}={value}"])

    return attempt


def _journal(folder: Path) -> Try:
    from gp_active_sensing.records.run_directory import JOURNAL
    from tests.unit.mission.missions import Drive

    options: dict[str, Any] = {"reading": {"gate": 6.0, "window": 0.25}}
    drive = Drive(folder / "run", **options)
    drive.start()
    for _ in range(60):
        drive.step()
    drive.kill()
    journal = folder / "run" / JOURNAL
    data = journal.read_bytes()

    def attempt(rng: random.Random) -> None:
        for left in (folder / "run").glob("journal.*-*"):
            left.unlink()
        journal.write_bytes(spoilt(data, rng))
        again = Drive(folder / "run", **options)
        again.start()
        again.kill()

    return attempt


def _kept(name: str, folder: Path) -> Try:
    """Return a function that reads a run directory with a damaged file `name`."""
    from gp_active_sensing.report import write_report
    from gp_active_sensing.sim import load_scenario, run_scenario

    run = folder / "run"
    run_scenario(load_scenario("line", overrides=["budget.readings=4"]), run)
    path = run / name
    data = path.read_bytes()

    def attempt(rng: random.Random) -> None:
        for left in run.glob(f"{path.stem}.*-*"):
            left.unlink()
        path.write_bytes(spoilt(data, rng))
        write_report(run)

    return attempt


def _model(folder: Path) -> Try:
    from gp_active_sensing.kernel_model.model_file import read_model, write_model
    from tests.kernel_models import make_model, rows

    path = write_model(folder / "model.npz", make_model(["SE", "RQ"], *rows()))
    data = path.read_bytes()

    def attempt(rng: random.Random) -> None:
        path.write_bytes(spoilt(data, rng))
        read_model(path)

    return attempt


def _cache(folder: Path) -> Try:
    from gp_active_sensing.util.cache import cached_arrays

    os.environ["XDG_CACHE_HOME"] = str(folder)
    right = {"v": np.arange(40.0).reshape(8, 5)}

    def look() -> dict[str, Any]:
        return cached_arrays("fuzz", 1, {}, lambda: right)

    look()
    (path,) = (folder / "gp_active_sensing").glob("*.npz")
    data = path.read_bytes()

    def attempt(rng: random.Random) -> None:
        path.write_bytes(spoilt(data, rng))
        assert np.array_equal(look()["v"], right["v"]), "wrong numbers are believed"

    return attempt


def _bag(folder: Path, storage: str, *, salvage: bool) -> Try:
    from gp_active_sensing.replay.bag import Bag
    from tests.replay.bags import header, message, write_bag

    def drive() -> Iterator[tuple[str, int, Any]]:
        for i in range(300):
            stamp = 10**9 * (1 + i)
            value = {"temperature": 20.0 + i, "variance": 0.1}
            head = header(stamp)
            yield "/reading", stamp, message("sensor_msgs/msg/Temperature", header=head, **value)

    path = write_bag(folder / "bag", drive(), storage=storage)
    (file,) = [f for f in path.iterdir() if f.suffix in (".mcap", ".db3")]
    wholes = {f: f.read_bytes() for f in path.iterdir()}

    def attempt(rng: random.Random) -> None:
        for name, data in wholes.items():
            name.write_bytes(data)
        target = file if rng.random() < 0.8 else path / "metadata.yaml"
        target.write_bytes(spoilt(wholes[target], rng))
        with Bag(path, salvage=salvage) as bag:
            for _ in bag.messages():
                pass

    return attempt


FORMATS: dict[str, Callable[[Path], Try]] = {
    **{f"map: {kind}": (lambda folder, kind=kind: _map(kind, folder)) for kind in MAKERS},
    "field: ASCII grid": _ascii_grid,
    "scenario (YAML)": _yaml,
    "--set": _overrides,
    "journal, gone on with": _journal,
    **{
        f"{name}, to a report": (lambda folder, name=name: _kept(name, folder))
        for name in ("journal.jsonl", "records.jsonl", "summary.json", "config.yaml")
    },
    "model of a belief over kernels": _model,
    "cache": _cache,
    **{
        f"bag: {storage}{', --salvage' if salvage else ''}": (
            lambda folder, storage=storage, salvage=salvage: _bag(folder, storage, salvage=salvage)
        )
        for storage in ("mcap", "sqlite3")
        for salvage in (False, True)
    },
}
"""For each format, a function that returns a reader of damaged files in a folder."""


def spoilt(data: bytes, rng: random.Random) -> bytes:
    """Damage a file: change bits; remove, repeat or zero pieces; or swap words of a text."""
    if isinstance(rng, Whole):
        return data
    how = rng.randrange(6)
    words = [] if b"\0" in data[:4000] else list(WORD.finditer(data))
    if how > 3 and words:
        changed, swaps = bytearray(data), rng.sample(words, min(len(words), rng.randrange(1, 4)))
        for found in sorted(swaps, key=lambda word: -word.start()):
            other = rng.choice(words).group() if rng.random() < 0.4 else rng.choice(ABSURD)
            changed[found.start() : found.end()] = other
        return bytes(changed)
    if how == 0 or not any(48 <= byte < 58 for byte in data):
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 5)):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if how == 1 and rng.random() < 0.5:
        at = rng.randrange(len(data))
        return data[:at] + bytes(rng.randrange(1, 5000)) + data[at:]
    return damaged(data, rng)


def peak_mb() -> float:
    """Return the largest memory of this process [MB]."""
    # ru_maxrss includes the memory of the parent process.
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024.0 for line in lines if line.startswith("VmHWM"))


def main() -> int:
    name, count, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    logging.disable(logging.CRITICAL)
    found: Counter[str] = Counter()
    problems: list[str] = []
    longest = 0.0

    def give_up(*_: object) -> None:
        raise GivenUp

    signal.signal(signal.SIGALRM, give_up)
    with tempfile.TemporaryDirectory() as folder:
        attempt = FORMATS[name](Path(folder))
        attempt(Whole())
        for i in range(count):
            began = time.process_time()
            signal.alarm(LIMIT)
            try:
                attempt(random.Random(f"{name} {seed} {i}"))
                found["read"] += 1
            except ActiveSensingError as error:
                found["refused" if str(error) else "refused without a word"] += 1
            except GivenUp:
                found["given up"] += 1
            except Exception:
                found["traceback"] += 1
                if len(problems) < 5:
                    problems.append(f"{i}: {traceback.format_exc(limit=-4)}")
            finally:
                signal.alarm(0)
            took = time.process_time() - began
            longest = max(longest, took)
            found["hang"] += took > HANG
    more = {"longest_s": longest, "peak_mb": peak_mb(), "problems": problems}
    sys.stdout.write(json.dumps({**found, **more}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
