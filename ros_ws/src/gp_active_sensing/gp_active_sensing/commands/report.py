"""The command ``report``: the page of a run or an experiment."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["report"]


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def report(directory: Path) -> None:
    """Write the report page of a run or an experiment (also of one that was interrupted).

    For an experiment, its tables and figures as well.
    """
    from gp_active_sensing.experiments import is_experiment, write_outputs
    from gp_active_sensing.report import write_report

    page = write_outputs(directory).page if is_experiment(directory) else write_report(directory)
    click.echo(str(page))
