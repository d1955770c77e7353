"""Node ``live_page``: the live page of the mission of ``active_sensing``, with its commands.

A process of its own, so that no viewer costs the planner time. What is shown is read from the run
directory of the mission, which `active_sensing` names on ``/diagnostics``; commands call its
services.
"""

# ruff: noqa: E402  whether there is a ROS to import is looked at first
from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.ros.environment import require_ros_in

require_ros_in(__name__)

from diagnostic_msgs.msg import DiagnosticArray
from std_srvs.srv import Trigger

from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.run_dirs import AUTO
from gp_active_sensing.ros.diagnostics import MISSION_STATUS
from gp_active_sensing.ros.node_base import GuardedNode, run_node
from gp_active_sensing.ros.parameters import LivePageConfig, ParameterTree
from gp_active_sensing.web.access import COMMANDS, CommandAnswer, WatchOptions
from gp_active_sensing.web.serve import make_server, served

__all__ = ["LivePageNode", "main"]

PATIENCE = {"pause": 30.0, "resume": 30.0, "finish": 180.0}
"""How long an answer is waited for [s]; that to ``finish`` comes when the report is written."""
NOTHING_KEPT = (
    "{} keeps its mission nowhere, so there is nothing to show: start it with run_dir:=auto, or "
    "with a folder"
)
NOT_HEARD = "waiting for {}, which says on /diagnostics where it keeps its mission"


class LivePageNode(GuardedNode):
    """Serves the page until the process ends.

    ROS Parameters:
        Those of `ros.parameters.LivePageConfig`.

    Subscribers:
        /diagnostics (diagnostic_msgs/DiagnosticArray): says where the mission is kept.

    It calls ~/pause, ~/resume and ~/finish of the node that it shows (std_srvs/Trigger).

    Attributes:
        server: of the page.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "live_page", automatically_declare_parameters_from_overrides=True, **options
        )
        tree = ParameterTree(self, LivePageConfig)
        tree.declare({})
        settings: LivePageConfig = tree.config()
        self._shown = self.resolve_service_name(settings.node)
        given = "" if settings.run_dir == AUTO else settings.run_dir
        self._path = Path(given).absolute() if given else None
        self._of_node = {
            name: self.create_client(Trigger, f"{settings.node}/{name}") for name in COMMANDS
        }
        watch = WatchOptions(
            host=settings.host,
            port=settings.port,
            private=settings.private,
            names=settings.allow_hosts,
        )
        self.server = make_server(self._path, watch, self._command)
        if self._path is None:
            self.server.follower.to(None, NOT_HEARD.format(self._shown))
            self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._serving = contextlib.ExitStack()
        self._serving.enter_context(served(self.server))
        # Not by the log, which goes out on /rosout and into files: it may hold the token.
        for line in self.server.lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        self.get_logger().info(f"the live page is served at {self.server.address}")

    def release(self) -> None:
        """Serve no longer."""
        self._serving.close()

    def _on_diagnostics(self, message: Any) -> None:
        """Follow the mission where the node says that it is kept."""
        wanted = f"{self._shown.lstrip('/')}: {MISSION_STATUS}"
        for status in message.status:
            if status.name != wanted:
                continue
            values = {pair.key: pair.value for pair in status.values}
            kept = values.get("run_dir", "")
            path = Path(kept) if kept else None
            self.server.follower.to(path, NOTHING_KEPT.format(self._shown))

    async def _command(self, name: str) -> CommandAnswer:
        """Call a service of the node; in the server's thread."""
        client = self._of_node[name]
        if not client.service_is_ready():
            msg = (
                f"{self._shown} is not there: nobody offers the service {self._shown}/{name}. The "
                "mission goes on as it is"
            )
            raise RunError(msg)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[CommandAnswer] = loop.create_future()

        def done(future: Any) -> None:  # in the executor's thread
            result = future.result()
            loop.call_soon_threadsafe(_fill, answer, CommandAnswer(result.success, result.message))

        client.call_async(Trigger.Request()).add_done_callback(done)
        try:
            return await asyncio.wait_for(answer, PATIENCE[name])
        except asyncio.TimeoutError:
            msg = (
                f"{self._shown} did not answer {name} within {PATIENCE[name]:g} s; it may still do "
                "it: look at the state"
            )
            raise RunError(msg) from None


def _fill(future: asyncio.Future[CommandAnswer], answer: CommandAnswer) -> None:
    if not future.done():
        future.set_result(answer)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return the exit code of the process."""
    return run_node(LivePageNode, args)


if __name__ == "__main__":
    sys.exit(main())
