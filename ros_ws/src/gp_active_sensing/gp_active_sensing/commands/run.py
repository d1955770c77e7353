"""The command ``run``: a scenario in simulation, without ROS."""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["run"]


@click.command()
@click.argument("scenario")
@click.option("--policy", metavar="NAME", help="Another policy than the scenario's.")
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Any key, e.g. sensor.noise_std=3",
)
@click.option("--budget", type=int, metavar="N", help="Newly observed places.")
@click.option("--seed", type=int, metavar="N", help="Key of every random draw.")
@click.option("--expansions", type=int, metavar="N", help="Limit a decision by expansions only.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Run directory.")
@click.option("--resume", is_flag=True, help="Go on with the run that --out holds.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, nothing else.")
@click.option("--no-report", is_flag=True, help="Write no report page.")
def run(
    scenario: str,
    policy: str | None,
    overrides: tuple[str, ...],
    budget: int | None,
    seed: int | None,
    expansions: int | None,
    out: Path | None,
    resume: bool,
    as_json: bool,
    no_report: bool,
) -> None:
    """Run SCENARIO (a shipped one's name, or a YAML file) in simulation, without ROS."""
    from datetime import datetime, timezone

    from rich.console import Console

    from gp_active_sensing.commands.console import show_stages, summary_lines
    from gp_active_sensing.report import write_report
    from gp_active_sensing.sim import load_scenario, run_name, run_scenario
    from gp_active_sensing.util.files import unused

    if resume and out is None:
        msg = "--resume needs --out DIR, the directory of the run to go on with"
        raise click.UsageError(msg)
    given = list(overrides)
    if budget is not None:
        given.append(f"budget.readings={budget}")
    if seed is not None:
        given.append(f"seed={seed}")
    if expansions is not None:
        given += [f"limit.expansions={expansions}", "limit.seconds=null"]
    loaded = load_scenario(scenario, overrides=given, policy=policy)
    directory = out or unused(Path("runs") / run_name(loaded, datetime.now(timezone.utc)))
    console = Console(quiet=as_json, soft_wrap=True)
    try:
        words = {
            "unit": loaded.field.unit,
            "scale_unit": loaded.scale_unit,
            "policy": str(loaded.policy["name"]),
        }
        with show_stages(console, total=loaded.budget.readings, **words) as show:
            summary = run_scenario(loaded, directory, resume=resume, on_stage=show)
    except KeyboardInterrupt:
        msg = f"interrupted; the same command with --out {directory} --resume goes on"
        raise click.ClickException(msg) from None
    page = None if no_report else write_report(directory)
    if as_json:
        click.echo(json.dumps(summary.to_mapping(), indent=2, allow_nan=False))
        return
    for line in summary_lines(summary.to_mapping()):
        click.echo(line)
    click.echo(f"  records           {directory}")
    if page is not None:
        click.echo(f"  report            {page}")
