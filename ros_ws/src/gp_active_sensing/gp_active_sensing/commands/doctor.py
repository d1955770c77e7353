"""The command ``doctor``: what is installed, what is missing and how to install it."""

from __future__ import annotations

import json
import sys

import click

__all__ = ["doctor"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(as_json: bool) -> None:
    """Say what is installed, what is missing and how to install it."""
    from gp_active_sensing.commands.installation import examine

    diagnosis = examine()
    if as_json:
        click.echo(json.dumps(diagnosis.to_mapping(), indent=2))
    else:
        colours = {"ok": "green", "missing": "yellow", "error": "red"}
        for check in diagnosis.checks:
            click.secho(f"{check.status:<8}", fg=colours[check.status], nl=False)
            click.echo(f"{check.name:<20} {check.found}".rstrip())
            if check.remedy:
                click.echo(f"{'':<8}{'':<20} → {check.remedy}")
        works = "works" if diagnosis.core_works else "does not work"
        click.echo(f"The core (belief, planning, simulation) {works}.")
    sys.exit(0 if diagnosis.core_works else 1)
