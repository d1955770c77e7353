"""Draw what RViz and Foxglove show, from the messages of short simulated missions.

    python docs/images/make_views.py              # all
    python docs/images/make_views.py town         # one

Needs ROS 2 and matplotlib. A launch is started by the runner; the topics of the RViz configuration
are listened to, and their newest messages are drawn as RViz draws them: the point cloud coloured by
one of its fields, the markers with their colours and widths in metres, the path, the arrows.
"""

from __future__ import annotations

import argparse
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gp_active_sensing.util.process import one_blas_thread

one_blas_thread()

import matplotlib as mpl  # noqa: E402

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import rclpy  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from matplotlib.collections import LineCollection  # noqa: E402
from matplotlib.patches import Circle  # noqa: E402
from matplotlib.patheffects import withStroke  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from visualization_msgs.msg import Marker  # noqa: E402

from gp_active_sensing.ros import qos  # noqa: E402
from gp_active_sensing.ros.publishers import PROBE_TOPICS, TOPICS  # noqa: E402
from gp_active_sensing.ros.runner import make_group  # noqa: E402

HERE = Path(__file__).resolve().parent
BACKGROUND = (40 / 255, 44 / 255, 52 / 255)  # of the RViz configuration
LEAST_WIDTH = 1.2  # points; RViz never lets a line vanish either
DOTS_PER_INCH = 100
HEIGHT = 5.0  # inches, of a panel
FAR_METRES = 120.0
"""How far the probe is from its waypoint in a picture, at least."""


@dataclass(frozen=True)
class View:
    """A mission, and the moment that is drawn.

    Args:
        launch: arguments of the launch traffic_sim.
        stage: decision after which the picture is taken.
        fields: of the point cloud, a panel each.
        near: half of the side of a further panel with the probe in its middle [m]; 0 = none.
        blocked_at: stages at which the controller says that it cannot get to the waypoint.
    """

    launch: dict[str, str]
    stage: int
    fields: tuple[str, ...] = ("mean", "std")
    near: float = 0.0
    blocked_at: tuple[int, ...] = ()


VIEWS = {
    # What was blocked last is the waypoint of the decision before, so it is near the probe.
    "town": View({"scenario": "town", "speed_factor": "6"}, 24, near=260.0, blocked_at=(12, 23)),
}


@dataclass
class Heard:
    """The newest message of each topic."""

    messages: dict[str, Any] = field(default_factory=dict)
    stage: int = 0

    @property
    def under_way(self) -> bool:
        """Everything was heard, and the probe is not yet where it is sent."""
        if not {"~/field", "~/map", "~/probes"} <= set(self.messages):
            return False
        if not (waypoint := self.messages.get("next_waypoint")):
            return True  # of several probes
        goal, here = waypoint.pose.position, self.messages["~/probes"].markers[0].pose.position
        return math.hypot(goal.x - here.x, goal.y - here.y) > FAR_METRES

    def take(self, topic: str) -> Callable[[Any], None]:
        """Return the callback of a topic."""
        return lambda message: self.messages.update({topic: message})

    def diagnostics(self, message: DiagnosticArray) -> None:
        """Record how far the mission is."""
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            if status.name.endswith(": mission"):
                self.stage = int(values["stage"])


def main() -> None:
    """Read the arguments and draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("views", nargs="*", choices=[[], *VIEWS], help="default: all")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    options = parser.parse_args()
    logging.basicConfig(format="%(message)s")
    for name in options.views or VIEWS:
        draw(listen(VIEWS[name]), VIEWS[name], options.out / f"views_{name}.png")


def listen(view: View) -> Heard:
    """Run a mission up to the moment of a view; return what was heard last."""
    heard = Heard()
    rclpy.init()
    node = rclpy.create_node("viewer")
    for topic, kind, profile in (*TOPICS, *PROBE_TOPICS):
        name = topic.replace("~", "active_sensing")
        node.create_subscription(kind, name, heard.take(topic), profile)
    node.create_subscription(DiagnosticArray, "/diagnostics", heard.diagnostics, qos.reliable())
    client = node.create_client(Trigger, "/active_sensing/unreachable")
    blocked = list(view.blocked_at)

    def tick() -> bool:
        rclpy.spin_once(node, timeout_sec=0.02)
        if blocked and heard.stage >= blocked[0]:
            blocked.pop(0)
            client.call_async(Trigger.Request())
        return heard.stage >= view.stage and heard.under_way

    make_group("traffic_sim", view.launch, on_line=lambda name, line: None).run(tick)
    node.destroy_node()
    rclpy.shutdown()
    return heard


def draw(heard: Heard, view: View, file: Path) -> None:
    """Draw the newest messages, a panel for each field of the point cloud."""
    messages = heard.messages
    cloud = table(messages["~/field"])
    whole = around(cloud)
    panels = [(column, whole, f"field: {column}") for column in view.fields]
    if view.near:
        here, r = messages["~/probes"].markers[0].pose.position, view.near
        box = here.x - r, here.y - r, here.x + r, here.y + r
        panels.append(("mean", box, "near the probe"))
    shapes = [(box[3] - box[1]) / (box[2] - box[0]) for _, box, _ in panels]
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(sum(HEIGHT / shape for shape in shapes) + 0.7 * len(panels), HEIGHT + 0.3),
        facecolor=BACKGROUND,
        squeeze=False,
        gridspec_kw={"width_ratios": [1.0 / shape for shape in shapes]},
        layout="constrained",
    )
    for ax, (column, box, title) in zip(axes[0], panels, strict=True):
        ax.set_xlim(box[0], box[2])
        ax.set_ylim(box[1], box[3])
        ax.set_aspect("equal")
        ax.set_axis_off()
        ax.set_title(title, color="white", fontsize=10)
        per_metre = 72 * HEIGHT / (box[3] - box[1])
        colours = ax.scatter(cloud["x"], cloud["y"], c=cloud[column], cmap="turbo", s=24, zorder=10)
        bar = figure.colorbar(colours, ax=ax, shrink=0.4, pad=0.0)
        bar.ax.tick_params(colors="white", labelsize=8)
        bar.outline.set_visible(False)
        draw_markers(ax, messages["~/map"].markers, per_metre)
        if plan := messages.get("~/plan"):
            points = [(p.pose.position.x, p.pose.position.y) for p in plan.poses]
            ax.plot(*zip(*points, strict=True), color="white", lw=1.6, zorder=20)
        if pose := messages.get("next_waypoint"):
            arrow(ax, pose.pose, 60.0, "#ff5a00", 22)
        draw_markers(ax, messages["~/probes"].markers, per_metre)
    figure.savefig(file, dpi=DOTS_PER_INCH, facecolor=BACKGROUND)
    plt.close(figure)
    shrink(file)


def draw_markers(ax: Any, markers: list[Marker], per_metre: float) -> None:
    """Draw markers with their colours, and their sizes in metres."""
    for marker in markers:
        c = marker.color
        colour = (c.r, c.g, c.b, c.a)
        if marker.action != Marker.ADD:
            continue
        z = 10 + 10 * (marker.points[0].z if marker.points else marker.pose.position.z)
        points = [(p.x, p.y) for p in marker.points]
        size = max(LEAST_WIDTH, marker.scale.x * per_metre)
        if marker.type == Marker.LINE_LIST:
            pairs = list(zip(points[::2], points[1::2], strict=True))
            ax.add_collection(LineCollection(pairs, colors=[colour], linewidths=size, zorder=z))
        elif marker.type == Marker.POINTS:
            ax.scatter(*zip(*points, strict=True), s=size**2, c=[colour], marker="s", zorder=z)
        elif marker.type == Marker.ARROW:
            arrow(ax, marker.pose, marker.scale.x, colour, 23)
        elif marker.type == Marker.SPHERE:
            at = marker.pose.position.x, marker.pose.position.y
            ax.add_patch(Circle(at, marker.scale.x / 2, color=colour, zorder=23))
        elif marker.type == Marker.TEXT_VIEW_FACING:
            at = marker.pose.position.x, marker.pose.position.y
            size = max(10.0, marker.scale.z * per_metre)
            edge = withStroke(linewidth=3, foreground=BACKGROUND)
            ax.text(
                *at, marker.text, color=colour, fontsize=size, weight="bold", ha="center",
                va="bottom", zorder=24, clip_on=True, path_effects=[edge],
            )  # fmt: skip


def arrow(ax: Any, pose: Any, length: float, colour: Any, z: float) -> None:
    """Draw an arrow that begins at a pose."""
    heading = 2.0 * math.atan2(pose.orientation.z, pose.orientation.w)
    dx, dy = length * math.cos(heading), length * math.sin(heading)
    ax.arrow(
        pose.position.x,
        pose.position.y,
        dx,
        dy,
        width=0.18 * length,
        head_width=0.5 * length,
        length_includes_head=True,
        color=colour,
        zorder=z,
    )


def table(cloud: Any) -> np.ndarray[Any, Any]:
    """Return the points of a cloud, by the names of its fields."""
    kinds = [(f.name, "<f4") for f in cloud.fields]
    return np.frombuffer(bytes(cloud.data), dtype=kinds)


def around(cloud: np.ndarray[Any, Any]) -> tuple[float, float, float, float]:
    """Return a box around all points, with a margin."""
    x, y = cloud["x"], cloud["y"]
    margin = 0.04 * float(max(np.ptp(x), np.ptp(y)))
    return (
        float(x.min()) - margin,
        float(y.min()) - margin,
        float(x.max()) + margin,
        float(y.max()) + margin,
    )


def shrink(file: Path) -> None:
    """Give a picture a palette where Pillow is there: a third of the size."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(file) as image:
        small = image.convert("RGB").quantize(
            255, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
    small.save(file, optimize=True)


if __name__ == "__main__":
    main()
