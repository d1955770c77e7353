"""The command ``gp-active-sensing replay``."""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["replay"]


@click.command()
@click.argument("bag", metavar="BAG", type=click.Path(path_type=Path))
@click.option("--salvage", is_flag=True, help="Read what can be read of a damaged bag.")
@click.option("--belief-only", is_flag=True, help="Learn the map; decide nothing.")
@click.option("--scenario", default="", metavar="NAME", help="Whose map, belief and policy.")
@click.option(
    "--params",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="ROS parameter file of the robot, as config/probe.yaml.",
)
@click.option("--map", "map_file", default="", metavar="FILE", help="A road map.")
@click.option("--policy", default="", metavar="NAME", help="Another policy.")
@click.option("--budget", type=int, metavar="N", help="Newly observed places.")
@click.option("--expansions", type=int, metavar="N", help="Limit a decision by expansions only.")
@click.option("--seed", type=int, metavar="N", help="Key of every random draw.")
@click.option("--reading-topic", default="", metavar="TOPIC", help="Default: /reading.")
@click.option("--reading-type", default="", metavar="TYPE", help="Default: the topic's own.")
@click.option("--reading-field", default="", metavar="PATH", help="Such as twist.twist.linear.x")
@click.option("--reading-variance-field", metavar="PATH", help="Of the noise variance.")
@click.option("--pose-topic", default="", metavar="TOPIC", help="Default: /pose.")
@click.option("--pose-type", default="", metavar="TYPE", help="Default: the topic's own.")
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Any parameter of the node, e.g. reading.scale=3.6",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Run directory.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, nothing else.")
@click.option("--no-report", is_flag=True, help="Write no report page.")
def replay(
    bag: Path,
    salvage: bool,
    belief_only: bool,
    scenario: str,
    params: Path | None,
    map_file: str,
    policy: str,
    budget: int | None,
    expansions: int | None,
    seed: int | None,
    reading_topic: str,
    reading_type: str,
    reading_field: str,
    reading_variance_field: str | None,
    pose_topic: str,
    pose_type: str,
    overrides: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    no_report: bool,
) -> None:
    """Replay the rosbag2 recording BAG (a folder, .mcap or .db3), without ROS.

    A recorded mission of active_sensing is done again, and its decisions are compared: equal are
    those with the same place and the same bounds, to 1e-9 of them; on the same processor, with the
    same versions, all of them are the same to the bit. Any other bag (or with another --policy,
    --scenario, …): what the planner would have chosen at each stage, against where the probe went.
    """
    from datetime import datetime, timezone

    from rich.console import Console

    from gp_active_sensing.commands.replay_console import Showing, end_lines
    from gp_active_sensing.replay.options import ReplayOptions
    from gp_active_sensing.replay.run import replay_bag
    from gp_active_sensing.report import write_report
    from gp_active_sensing.util.files import unused

    given = ReplayOptions(
        scenario=scenario,
        params=params,
        map_file=map_file,
        policy=policy,
        budget=budget,
        expansions=expansions,
        seed=seed,
        reading_topic=reading_topic,
        reading_type=reading_type,
        reading_field=reading_field,
        reading_variance_field=reading_variance_field,
        pose_topic=pose_topic,
        pose_type=pose_type,
        overrides=overrides,
    )
    now = datetime.now(timezone.utc)
    directory = out or unused(Path("runs") / f"replay-{bag.stem or 'bag'}-{now:%Y%m%dT%H%M%SZ}")
    showing = Showing(Console(quiet=as_json, soft_wrap=True))
    try:
        with showing:
            done = replay_bag(
                bag,
                directory,
                given,
                salvage=salvage,
                belief_only=belief_only,
                show=showing.record,
                begin=showing.begin,
            )
    except KeyboardInterrupt:
        msg = f"interrupted; what was replayed so far is in {directory}"
        raise click.ClickException(msg) from None
    page = None if no_report else write_report(directory)
    if as_json:
        click.echo(json.dumps(done.summary, indent=2, allow_nan=False))
        return
    for line in end_lines(done.summary):
        click.echo(line)
    click.echo(f"  records           {directory}")
    if page is not None:
        click.echo(f"  report            {page}")
