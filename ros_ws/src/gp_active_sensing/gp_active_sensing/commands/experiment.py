"""The command ``experiment``: many runs, then tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

__all__ = ["experiment"]


@click.command()
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
    from gp_active_sensing.util.files import unused

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
