"""The command line, called as a user calls it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from gp_active_sensing.cli import cli as group


def cli(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(group, [str(a) for a in arguments], prog_name="gp-active-sensing")


def failed(result: Result, *expected: str) -> None:
    """Fail unless there is one clear message on stderr, no traceback, and exit code 1."""
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.output
    for text in expected:
        assert text in result.stderr
