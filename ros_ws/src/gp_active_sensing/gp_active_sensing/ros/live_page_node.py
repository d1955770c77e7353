"""Node ``live_page``: serve a web page that shows and controls the mission of a running node.

The page is served by a separate process, so that viewers do not slow the planner. The process reads
the run directory of the mission. `active_sensing` writes the path of this directory to a file that
only the same user can write. A command on the page calls a service of `active_sensing`.
"""

# ruff: noqa: E402  ROS is imported after the check for it
from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gp_active_sensing.ros.environment import require_ros_in

require_ros_in(__name__)

from std_srvs.srv import Trigger

from gp_active_sensing.errors import RunError
from gp_active_sensing.mission.run_dirs import AUTO, noted_run
from gp_active_sensing.ros.node_base import GuardedNode, run_node
from gp_active_sensing.ros.parameters import LivePageConfig, ParameterTree
from gp_active_sensing.web.access import COMMANDS, CommandAnswer, WatchOptions
from gp_active_sensing.web.serve import make_server, served

PATIENCE = {"pause": 30.0, "resume": 30.0, "finish": 180.0}
"""Longest wait for the answer of each service [s]; ``finish`` first writes the report."""
NOTHING_KEPT = (
    "{} keeps its mission nowhere, so there is nothing to show: start it with run_dir:=auto, or "
    "with a folder"
)
NOT_NOTED = (
    "waiting for {}: no node of that name, ROS domain and user has run on this machine. Set the "
    "parameter run_dir where its mission is kept under another user or in another container"
)
LOOK_SECONDS = 0.5
"""Interval between checks of the file that has the path of the run directory [s]."""


class LivePageNode(GuardedNode):
    """Node that serves the live page.

    The parameters are in `ros.parameters.LivePageConfig`. The node calls the services ``~/pause``,
    ``~/resume`` and ``~/finish`` (std_srvs/Trigger) of the node whose mission it shows.
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
            tiles=settings.tiles,
        )
        self.server = make_server(self._path, watch, self._command)
        if self._path is None:
            self._follow()
            self.create_timer(LOOK_SECONDS, self._follow)
        self._serving = contextlib.ExitStack()
        self._serving.enter_context(served(self.server))
        # The text is not logged: it may contain the token, and logs go to /rosout and files.
        for line in self.server.lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        self.get_logger().info(f"the live page is served at {self.server.address}")

    def release(self) -> None:
        """Stop the server."""
        self._serving.close()

    def _follow(self) -> None:
        """Show the run directory whose path `active_sensing` has written to a file."""
        try:
            path, noted = noted_run(self._shown, self.context.get_domain_id())
            if not noted and self.server.follower.path is not None:
                return  # the node has ended; its mission stays on the page
            problem = (NOTHING_KEPT if noted else NOT_NOTED).format(self._shown)
        except RunError as error:
            path, problem = None, str(error)
        self.server.follower.to(path, problem)

    async def _command(self, name: str) -> CommandAnswer:
        """Call a service of `active_sensing`; this method runs in the web server's thread."""
        client = self._of_node[name]
        if not client.service_is_ready():
            msg = (
                f"{self._shown} is not there: nobody offers the service {self._shown}/{name}. The "
                "mission goes on as it is"
            )
            raise RunError(msg)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[CommandAnswer] = loop.create_future()

        def done(future: Any) -> None:  # runs in the executor's thread
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
