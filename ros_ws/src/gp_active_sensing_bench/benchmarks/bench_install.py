"""Measure the disk space of an installation, and the time of its first start."""

from __future__ import annotations

import subprocess
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from common import CORE, Section

OF_PIP = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}
PARTS = ("numpy", "scipy", "networkx", "shapely", "gp_active_sensing")
NODE = "import gp_active_sensing.ros.active_sensing_node"


def run() -> Section:
    section = Section(
        "A probe's installation",
        "python benchmarks/run.py install",
        "A new virtual environment with the packages of PyPI; blocks on the disk as `du` counts "
        "them, in MB of 10⁶ bytes, without pip itself. First start: importing the node right "
        "after pip ended; next start: the same once more.",
        ("command", "MB", "of this byte code", *PARTS, "first start s", "next start s"),
    )
    for options in ((), ("--no-compile",)):
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=True)
            python = Path(folder) / "bin" / "python"
            target = f"{CORE}[ros]"
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", *options, target], check=True
            )
            (site,) = Path(folder).glob("lib/python*/site-packages")
            sizes = _sizes(site)
            whole = sum(sizes.values())
            compiled = _blocks(p for p in site.rglob("*.pyc") if not _of_pip(p, site))
            parts = [round(sizes[part]) for part in PARTS]
            starts = [_seconds([str(python), "-c", NODE]) for _ in range(2)]
        words = " ".join(("pip install", *options, '"…[ros]"'))
        section.rows.append((f"`{words}`", round(whole), round(compiled), *parts, *starts))
    return section


def _sizes(site: Path) -> Counter[str]:
    """Return the size of each package with its shared libraries [MB]."""
    found: Counter[str] = Counter()
    for path in site.iterdir():
        if not _of_pip(path / "x", site):
            files = [path] if path.is_file() else list(path.rglob("*"))
            found[path.name.split(".")[0].split("-")[0]] += _blocks(files)
    return found


def _of_pip(path: Path, site: Path) -> bool:
    return path.relative_to(site).parts[0].split("-")[0].split(".")[0] in OF_PIP


def _blocks(files: Iterable[Path]) -> float:
    return sum(path.lstat().st_blocks * 512 for path in files) / 1e6


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, env={"PATH": "/usr/bin:/bin"}, cwd=tempfile.gettempdir())
    return time.perf_counter() - started
