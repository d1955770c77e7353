"""Make the environments of other projects' planners.

``python benchmarks/adapters/make.py FOLDER [NAME …]`` takes a few minutes and up to several GB for
each environment. Existing environments are kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = {name: HERE / f"{name}.txt" for name in ("botorch", "sgptools")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="of the environments")
    parser.add_argument("names", nargs="*", choices=[[], *REQUIREMENTS], help="default: all")
    options = parser.parse_args()
    for name in options.names or REQUIREMENTS:
        python = options.folder / name / "bin" / "python"
        if python.exists():
            continue
        sys.stderr.write(f"making {options.folder / name} …\n")
        venv.create(options.folder / name, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS[name]]
        subprocess.run(pip, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
