from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from gp_active_sensing.cli import cli as group
from tests.waiting import LIMIT


def cli(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(group, [str(a) for a in arguments], prog_name="gp-active-sensing")


def failed(result: Result, *expected: str) -> None:
    """Fail unless there is one clear message on stderr, no traceback, and exit code 1."""
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.output
    for text in expected:
        assert text in result.stderr


def ran(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Return how a program ended; its output is what it says on both streams."""
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(command, **both, text=True, timeout=LIMIT, check=False, **options)
