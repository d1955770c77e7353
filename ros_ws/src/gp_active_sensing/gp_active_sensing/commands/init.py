"""Command ``init``: ask a few questions and write the parameter file of a mission."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gp_active_sensing.commands import echo
from gp_active_sensing.errors import MissingDependencyError, one_line

if TYPE_CHECKING:
    from gp_active_sensing.ros.running_system import RunningSystem

_LAUNCH = "ros2 launch gp_active_sensing probe.launch.py params_file:={}"
_RUNNER = "python -m gp_active_sensing.ros.runner probe params_file:={}"
_NEEDED = ("map", "reading", "pose", "budget")


@click.command()
@click.option(
    "--map", metavar="MAP", help="File, shipped map, or rectangle in metres: WxH or X0,Y0,X1,Y1."
)
@click.option(
    "--map-topic",
    default="",
    metavar="TOPIC",
    help="Topic of a nav_msgs/msg/OccupancyGrid from SLAM or a map server, in place of --map.",
)
@click.option(
    "--radius", type=float, metavar="M", help="Radius of the robot, which keeps off walls."
)
@click.option("--spacing", type=float, metavar="M", help="Distance between neighbouring places.")
@click.option("--frame", default="", help="Frame of the map, if its file names none.")
@click.option(
    "--speed",
    metavar="SPEED",
    help="Speed of the robot where the map has no speed limit: 1.5 (m/s) or 3 kn. Needed for a "
    "budget in time.",
)
@click.option("--reading", metavar="TOPIC", help="Topic of the readings.")
@click.option("--reading-type", default="", metavar="TYPE", help="Message type: package/msg/Name.")
@click.option("--field", default="", metavar="PATH", help="Path of the value in the message.")
@click.option(
    "--further",
    multiple=True,
    metavar="NAME=TOPIC[,TYPE[,FIELD]]",
    help="Another quantity, such as chlorophyll=/sonde/chl. May be repeated. To name the first "
    "quantity too, write --reading NAME=TOPIC.",
)
@click.option("--pose", metavar="TOPIC", help="Topic of the pose, or tf for the transforms.")
@click.option("--pose-type", default="", metavar="TYPE", help="Message type: package/msg/Name.")
@click.option("--datum", default="", metavar="LAT,LON", help="Origin of the map, for NavSatFix.")
@click.option(
    "--delay",
    type=float,
    metavar="S",
    help="Delay of the sensor: how much older a reading is than its stamp.",
)
@click.option(
    "--probes",
    default="",
    metavar="NAMES",
    help="Several robots: a number, or names such as boat_1,boat_2.",
)
@click.option(
    "--waypoint",
    default="",
    metavar="TOPIC",
    help="Topic on which the waypoints are published, such as goal_pose.",
)
@click.option(
    "--budget", metavar="N", help="Places (40), distance (2 km) or time (30 min); or several."
)
@click.option(
    "--return-home/--no-return-home",
    default=None,
    help="Return to the start place within the budget.",
)
@click.option(
    "--sortie", metavar="N", help="Distance or time of one battery: 2 km, 30 min, or both."
)
@click.option("--unit", metavar="UNIT", help="Unit of the readings, such as degC.")
@click.option(
    "--settle",
    metavar="TIME",
    help="Waiting time at each place, for a slow sensor: 30 (s) or 2 min.  [default: 0]",
)
@click.option("--export", metavar="FORMATS", help="Formats of the final map, such as csv,geojson.")
@click.option("--name", default="", help="Name of the mission on its pages.")
@click.option("--run-dir", metavar="DIR", help="Folder for the records.  [default: auto]")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default="mission.yaml",
    show_default=True,
    help="File to write.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--offline", is_flag=True, help="Do not check the running ROS system.")
def init(out: Path, force: bool, offline: bool, **given: Any) -> None:
    """Write the parameter file of a mission for your own robot.

    The command asks for the settings that the options do not give. It compares all answers with the
    running ROS system, and listens to slow topics for up to 12 s. If an answer does not fit the
    running system, the file is still written, but the exit code is 1. If an answer cannot be
    used, such as a map that does not exist, nothing is written.
    """
    from gp_active_sensing.commands.mission_draft import MissionDraft
    from gp_active_sensing.util.files import write_whole

    if given["map"] and given["map_topic"]:
        msg = "--map and --map-topic are both given; the mission has one map: leave one out"
        raise click.UsageError(msg)
    given["map"] = given["map"] or given["map_topic"]
    missing = [f"--{name}" for name in _NEEDED if not given[name]]
    if missing and not has_terminal():
        msg = f"there is no terminal to ask on; give {', '.join(missing)} as well"
        raise click.UsageError(msg)
    if out.exists() and not force:
        msg = f"{out} exists; give another name (--out), or --force to replace it"
        raise click.UsageError(msg)

    with _system(offline=offline) as system:
        draft = MissionDraft(given, system, asking=bool(missing))
        draft.answer()
        text = draft.text(_start(out))
    write_whole(out, text)
    # A name from the ROS system may contain control characters.
    for line in draft.lines:
        echo(one_line(line))
    if draft.misfits:
        click.secho("Does not fit:", fg="yellow")
        for misfit in draft.misfits:
            echo(f"  - {one_line(misfit)}")
    echo(f"wrote {out}. Start it:\n  {_start(out)}")
    sys.exit(1 if draft.misfits else 0)


def has_terminal() -> bool:
    """Return True if questions can be asked on a terminal."""
    return sys.stdin.isatty()


def _start(out: Path) -> str:
    return (_LAUNCH if shutil.which("ros2") else _RUNNER).format(out)


@contextlib.contextmanager
def _system(*, offline: bool) -> Iterator[RunningSystem | None]:
    """Yield the running ROS system; None if ROS is missing, or with `offline`."""
    if offline:
        yield None
        return
    try:
        from gp_active_sensing.ros.environment import require_ros

        require_ros()
        from gp_active_sensing.ros.running_system import running_system
    except MissingDependencyError as error:
        echo(f"note: topics and types are not looked at, since {error}")
        yield None
        return
    with running_system() as system:
        yield system
