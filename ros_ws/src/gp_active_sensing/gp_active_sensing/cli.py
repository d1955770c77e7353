"""The command ``gp-active-sensing``.

Exit codes: 0 done, 1 failed with one clear message, 2 wrong usage. Everything heavy is imported
inside the command that needs it, so that ``--help`` answers at once.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import click

from gp_active_sensing import __version__
from gp_active_sensing.cli_delay import delay
from gp_active_sensing.cli_learn import learn
from gp_active_sensing.cli_maps import maps
from gp_active_sensing.cli_model import model
from gp_active_sensing.cli_replay import replay
from gp_active_sensing.errors import ActiveSensingError
from gp_active_sensing.threads import one_blas_thread

__all__ = ["main"]


class _Group(click.Group):
    """Turns errors into one message and exit code 1; ``--debug`` shows where they came from."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except ActiveSensingError as error:
            if ctx.params.get("debug"):
                raise
            raise click.ClickException(str(error)) from error
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            msg = (
                f"unexpected {type(error).__name__}: {error}\n"
                "This is a defect; `gp-active-sensing --debug …` shows where it happened"
            )
            raise click.ClickException(msg) from error


class _ClickHandler(logging.Handler):
    """Log records as lines on stderr, wherever stderr points by then."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"{record.levelname.lower()}: {record.getMessage()}", err=True)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gp-active-sensing")
@click.option("--debug", is_flag=True, help="Show where an error came from.")
@click.option("-v", "--verbose", is_flag=True, help="Say more.")
def _cli(debug: bool, verbose: bool) -> None:
    """Choose where to measure next: Gaussian-process active sensing."""
    root = logging.getLogger("gp_active_sensing")
    root.handlers = [_ClickHandler()]
    root.setLevel(logging.DEBUG if debug else logging.INFO if verbose else logging.WARNING)


_cli.add_command(delay)
_cli.add_command(learn)
_cli.add_command(maps)
_cli.add_command(model)
_cli.add_command(replay)


@_cli.command()
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

    from gp_active_sensing.console import show_stages, summary_lines
    from gp_active_sensing.files import unused
    from gp_active_sensing.report import write_report
    from gp_active_sensing.sim import load_scenario, run_name, run_scenario

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
        units = {"unit": loaded.field.unit, "scale_unit": loaded.scale_unit}
        with show_stages(console, total=loaded.budget.readings, **units) as show:
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


@_cli.command()
@click.argument("file")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Its directory.")
@click.option("--resume", is_flag=True, help="Go on with the experiment that --out holds.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes; default: cores.")
@click.option("--cluster", metavar="ADDRESS", help="Use the workers of this dask scheduler.")
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="Seeds 0 … N-1 only.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON, nothing else.")
def experiment(
    file: str,
    out: Path | None,
    resume: bool,
    jobs: int | None,
    cluster: str | None,
    seeds: int | None,
    as_json: bool,
) -> None:
    """Run the experiment FILE (a shipped one's name, or a YAML file): many runs, then tables."""
    import warnings
    from datetime import datetime, timezone

    from rich.console import Console

    from gp_active_sensing.experiments import load_experiment, run_experiment, write_outputs
    from gp_active_sensing.experiments.outputs import outcome_mapping
    from gp_active_sensing.experiments.show import end_lines, failure_lines, show_trials
    from gp_active_sensing.files import unused

    if resume and out is None:
        msg = "--resume needs --out DIR, the directory of the experiment to go on with"
        raise click.UsageError(msg)
    if cluster is not None and jobs is not None:
        msg = "--jobs is for this machine; on a cluster each worker takes one trial at a time"
        raise click.UsageError(msg)
    # A worker that has grown large is replaced by a fresh one, which nobody has to know.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
    warnings.filterwarnings("ignore", message=".*tasks which were still being processed")
    # The helper process that frees the workers' semaphores inherits this; after Ctrl-C it warns of
    # those that it frees for them.
    if (quiet := "ignore:resource_tracker:UserWarning") not in sys.warnoptions:
        sys.warnoptions.append(quiet)
    loaded = load_experiment(file, seeds=seeds)
    now = datetime.now(timezone.utc)
    directory = out or unused(Path("runs") / f"{loaded.config.name}-{now:%Y%m%dT%H%M%SZ}")
    console = Console(quiet=as_json, soft_wrap=True)
    try:
        with show_trials(console) as show:
            found = run_experiment(
                loaded,
                directory,
                resume=resume,
                jobs=jobs,
                cluster=cluster,
                on_start=show.start,
                on_trial=show.trial,
            )
        outputs = write_outputs(directory, found)
    except KeyboardInterrupt:
        begun = (directory / "experiment.yaml").is_file()
        hint = f"; the same command with --out {directory} --resume goes on" if begun else ""
        msg = f"interrupted{hint}"
        raise click.ClickException(msg) from None
    if as_json:
        click.echo(json.dumps(outcome_mapping(found, outputs), indent=2, allow_nan=False))
    else:
        for line in end_lines(found, outputs):
            click.echo(line)
    if found.failures:
        raise click.ClickException("\n".join(failure_lines(found, str(directory))))


@_cli.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with all parameters.")
def policies(names: tuple[str, ...], as_json: bool) -> None:
    """List the policies, or those of NAME with their parameters."""
    from gp_active_sensing.catalogue import describe_policies
    from gp_active_sensing.planning import policies as known

    for name in names:
        known.factory(name)  # says what there is, where it is none
    found = [policy for policy in describe_policies() if not names or policy["name"] in names]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for policy in found:
        click.secho(policy["name"], bold=True, nl=False)
        click.echo(f"  {policy['help']}")
        if not names:
            continue
        for parameter in policy["parameters"]:
            unit = f" {parameter['unit']}" if parameter["unit"] else ""
            bounds = f" ({parameter['bounds']})" if parameter["bounds"] else ""
            default = json.dumps(parameter["default"], ensure_ascii=False)
            click.echo(f"    {parameter['name']:<14} {default}{unit}{bounds}  {parameter['help']}")
    if not names:
        click.echo("Parameters: gp-active-sensing policies NAME")


@_cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(as_json: bool) -> None:
    """Say what is installed, what is missing and how to install it."""
    from gp_active_sensing.doctor import examine

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


@_cli.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def report(directory: Path) -> None:
    """Write the report page of a run or an experiment (also of one that was interrupted).

    For an experiment, its tables and figures as well.
    """
    from gp_active_sensing.experiments import is_experiment, write_outputs
    from gp_active_sensing.report import write_report

    page = write_outputs(directory).page if is_experiment(directory) else write_report(directory)
    click.echo(str(page))


def main() -> None:
    """Entry point of the command."""
    one_blas_thread()
    _cli(prog_name="gp-active-sensing")


if __name__ == "__main__":
    main()
