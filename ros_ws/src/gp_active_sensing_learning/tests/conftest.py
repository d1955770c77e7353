"""Make helpers importable: `from learning_support …`, and `from tests.…` of the core."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# At the end: an installed package must not be shadowed by the sources.
sys.path += [str(_HERE), str(_HERE.parents[1] / "gp_active_sensing")]
# pytest may have made a package `tests` of this folder; the core's has the helpers.
sys.modules.pop("tests", None)
pytest_plugins = ("tests.plugin",)
