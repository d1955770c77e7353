from __future__ import annotations

import dataclasses
from pathlib import Path

from click.testing import CliRunner

from gp_active_sensing.cli import cli
from gp_active_sensing.commands.console import summary_lines
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.records.summary import RunSummary


def check_command_reports(run_dir: Path) -> None:
    """Have ``gp-active-sensing report`` write the page again, and the summary shown."""
    page = run_dir / "report.html"
    page.unlink(missing_ok=True)
    done = CliRunner().invoke(cli, ["report", str(run_dir)])
    assert done.exit_code == 0, done.output
    assert done.output.strip() == str(page)
    summary = RunDirectory.open(run_dir).summary()
    assert f"Run {summary['status']}: {summary['reason']}" in page.read_text(encoding="utf-8")
    # The same keys as those of a simulated run, so anyone who reads one reads the other; a run of
    # one quantity has no further ones.
    keys = [field.name for field in dataclasses.fields(RunSummary)]
    assert list(summary) == [key for key in keys if key != "quantities"]
    assert summary["driver"] == "ros"
    lines = "\n".join(summary_lines(summary))
    assert f"{summary['observed']} of {summary['places']}" in lines
