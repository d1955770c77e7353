"""Commands ``run``, ``replay``, ``report`` and ``watch``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import click

from gp_active_sensing.commands import echo
from gp_active_sensing.errors import RunError, suggest

Command = TypeVar("Command", bound=Callable[..., Any])


def _shared(keys: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options common to `run` and `replay`.

    `keys` names examples of keys, for the help of --set.
    """
    options = (
        click.option("--budget", type=int, metavar="N", help="Number of places to read."),
        click.option("--seed", type=int, metavar="N", help="Seed of all random draws."),
        click.option(
            "--expansions",
            type=int,
            metavar="N",
            help="Largest number of planner expansions for a decision, in place of the time limit.",
        ),
        click.option(
            "--set",
            "overrides",
            metavar="KEY=VALUE",
            multiple=True,
            help=f"{keys}. May be repeated.",
        ),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Folder for the records. Default: a new folder in runs.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print only the summary, as JSON."),
        click.option("--no-report", is_flag=True, help="Do not write the report page."),
    )

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.command()
@click.argument("scenario")
@click.option("--policy", metavar="NAME", help="Policy in place of the scenario's.")
@click.option("--resume", is_flag=True, help="Continue the run in the folder --out.")
@_shared("Any key of the scenario, such as sensor.noise_std=3")
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
    """Simulate a mission, without ROS.

    SCENARIO is the name of a shipped scenario, or a YAML file.
    """
    from datetime import datetime, timezone

    from rich.console import Console

    from gp_active_sensing.commands.console import show_stages, summary_lines
    from gp_active_sensing.sim import load_scenario, run_scenario
    from gp_active_sensing.sim.driver import run_name
    from gp_active_sensing.util.files import unused

    if resume and out is None:
        msg = "--resume needs --out DIR, the folder of the run to continue"
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
        with show_stages(console, loaded) as (show, home):
            summary = run_scenario(loaded, directory, resume=resume, on_stage=show, on_home=home)
    except KeyboardInterrupt:
        msg = f"interrupted; to continue, add --out {directory} --resume to the command"
        raise click.ClickException(msg) from None
    mapping = summary.to_mapping()
    weights = loaded.map.weights
    weighted = bool(weights.column or weights.areas)
    lines = summary_lines(mapping, loaded.main, weighted=weighted)
    _conclude(directory, mapping, lines, as_json=as_json, no_report=no_report)


def _conclude(
    directory: Path,
    summary: Mapping[str, Any],
    lines: Sequence[str],
    *,
    as_json: bool,
    no_report: bool,
) -> None:
    from gp_active_sensing.report import write_report

    page = None if no_report else write_report(directory)
    if as_json:
        click.echo(json.dumps(summary, indent=2, allow_nan=False))
        return
    for line in (*lines, f"  records           {directory}"):
        echo(line)
    if page is not None:
        echo(f"  report            {page}")


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def report(directory: Path) -> None:
    """Write the report page of a run or an experiment.

    The run may be interrupted or still under way. For an experiment, tables and figures are
    written too.
    """
    from gp_active_sensing.report import write_report

    if not (directory / "experiment.yaml").is_file():
        echo(str(write_report(directory)))
        return
    writers = [entry.load() for entry in metadata.entry_points(group="gp_active_sensing.reports")]
    page = next(filter(None, (write(directory) for write in writers)), None)
    if page is None:
        msg = f"{directory} holds an experiment: install gp_active_sensing_bench for its report"
        raise RunError(msg)
    echo(str(page))


@click.command()
@click.argument("bag", metavar="BAG", type=click.Path(path_type=Path))
@click.option("--salvage", is_flag=True, help="Read the intact parts of a damaged bag.")
@click.option("--belief-only", is_flag=True, help="Estimate the map, and plan nothing.")
@click.option(
    "--scenario", default="", metavar="NAME", help="Scenario with the map, belief and policy."
)
@click.option(
    "--params",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="ROS parameter file of the robot, such as config/probe.yaml.",
)
@click.option("--map", "map_file", default="", metavar="FILE", help="File of a road map.")
@click.option("--policy", default="", metavar="NAME", help="Policy in place of the recorded one.")
@click.option(
    "--reading-topic", default="", metavar="TOPIC", help="Topic of the readings. Default: /reading."
)
@click.option("--reading-type", default="", metavar="TYPE", help="Default: the type of the topic.")
@click.option("--reading-field", default="", metavar="PATH", help="Path of the value in a message.")
@click.option(
    "--reading-variance-field", metavar="PATH", help="Path of the noise variance in the message."
)
@click.option(
    "--pose-topic", default="", metavar="TOPIC", help="Topic of the poses. Default: /pose."
)
@click.option("--pose-type", default="", metavar="TYPE", help="Default: the type of the topic.")
@_shared("Any parameter of the node, such as reading.scale=3.6")
def replay(
    bag: Path,
    salvage: bool,
    belief_only: bool,
    out: Path | None,
    as_json: bool,
    no_report: bool,
    reading_type: str,
    reading_variance_field: str | None,
    pose_type: str,
    overrides: tuple[str, ...],
    **given: Any,
) -> None:
    """Replay a recorded bag, without ROS.

    BAG is a rosbag2 folder, or a file .mcap or .db3. If the bag has a mission of this package, its
    decisions are computed again and compared with the recorded ones. Two decisions count as
    equal if they choose the same place and the planner's bounds on its value differ by at most
    1e-9. For any other bag, or with another policy or scenario, each decision is compared with the
    place where the robot went.
    """
    from datetime import datetime, timezone

    from rich.console import Console

    from gp_active_sensing.commands.console import end_lines, show_replay
    from gp_active_sensing.records.run_directory import RunDirectory
    from gp_active_sensing.replay.options import ReplayOptions
    from gp_active_sensing.replay.run import replay_bag
    from gp_active_sensing.report.source import main_quantity
    from gp_active_sensing.util.files import unused

    types = {"reading.type": reading_type, "pose.type": pose_type}
    named = [f"{key}={name}" for key, name in types.items() if name]
    if reading_variance_field is not None:
        named.append(f"reading.variance_field={reading_variance_field}")
    now = datetime.now(timezone.utc)
    directory = out or unused(Path("runs") / f"replay-{bag.stem or 'bag'}-{now:%Y%m%dT%H%M%SZ}")
    try:
        with show_replay(Console(quiet=as_json, soft_wrap=True)) as (begin, show):
            done = replay_bag(
                bag,
                directory,
                ReplayOptions(overrides=(*named, *overrides), **given),
                salvage=salvage,
                belief_only=belief_only,
                show=show,
                begin=begin,
            )
    except KeyboardInterrupt:
        msg = f"interrupted; what was replayed so far is in {directory}"
        raise click.ClickException(msg) from None
    main = main_quantity(RunDirectory.open(done.run_dir).config)
    lines = end_lines(done.summary, main)
    _conclude(directory, done.summary, lines, as_json=as_json, no_report=no_report)


@click.command()
@click.argument("run_dir", metavar="RUN_DIR", type=click.Path(path_type=Path))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. 0.0.0.0 = all addresses of this machine.",
)
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), metavar="N", help="Port. 0 = any free port."
)
@click.option("--private", is_flag=True, help="Viewers need the token that is printed.")
@click.option(
    "--viewers",
    default=50,
    type=click.IntRange(1),
    metavar="N",
    help="Largest number of viewers at the same time.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="Further host name under which viewers may open the page.",
)
@click.option(
    "--tiles",
    default="",
    metavar="URL",
    help="Base map, such as https://tile.example.org/{z}/{x}/{y}.png. Browsers load it.",
)
def watch(run_dir: Path, **options: Any) -> None:
    """Serve the live page of a run.

    The command writes nothing to RUN_DIR. The run may begin later, if the parent folder of RUN_DIR
    exists. Ctrl-C ends the page. The run continues.
    """
    from gp_active_sensing.records.run_directory import check_single
    from gp_active_sensing.web.access import WatchOptions
    from gp_active_sensing.web.serve import serve

    if run_dir.is_file():
        msg = f"{run_dir} is a file; expected the directory of a run"
        raise click.ClickException(msg)
    run_dir = run_dir.absolute()
    if not run_dir.parent.is_dir():
        msg = (
            f"{run_dir}: the folder {run_dir.parent} does not exist, so no run can begin there; "
            "check the path, or make the folder first"
        )
        raise click.ClickException(msg)
    check_single(run_dir)
    if not run_dir.exists():
        folders = (each.name for each in run_dir.parent.iterdir() if each.is_dir())
        if near := suggest(run_dir.name, folders):
            echo(f"{run_dir} does not exist yet.{near}")
    serve(run_dir, WatchOptions(**options), echo)
