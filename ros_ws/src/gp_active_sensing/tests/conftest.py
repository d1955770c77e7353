"""Makes `from tests.… import …` work; what the tests share is in plugin.py."""

from __future__ import annotations

import sys
from pathlib import Path

# At the end: an installed package must not be shadowed by the sources.
sys.path.append(str(Path(__file__).resolve().parents[1]))
pytest_plugins = ("tests.plugin",)
