from __future__ import annotations

import logging

from gp_active_sensing.ros.node_base import forward_logs


class Target:
    def __init__(self, *, shows_debug: bool = False) -> None:
        self.said: list[tuple[str, str]] = []
        self.shows_debug = shows_debug

    def error(self, text: str) -> None:
        self.said.append(("error", text))

    def warning(self, text: str) -> None:
        self.said.append(("warning", text))

    def info(self, text: str) -> None:
        self.said.append(("info", text))

    def debug(self, text: str) -> None:
        self.said.append(("debug", text))

    def is_enabled_for(self, severity: object) -> bool:
        return self.shows_debug


def test_levels_are_kept_and_the_forwarding_ends() -> None:
    target = Target()
    undo = forward_logs(target)
    logger = logging.getLogger("gp_active_sensing.loop")
    logger.info("one %d", 1)
    logger.warning("two")
    logger.error("three")
    undo()
    logger.error("four")
    assert target.said == [("info", "one 1"), ("warning", "two"), ("error", "three")]


def test_repeated_warnings_are_said_once_a_second_and_counted() -> None:
    target = Target()
    now = [0.0]
    undo = forward_logs(target, lambda: now[0])
    logger = logging.getLogger("gp_active_sensing.loop")
    for i in range(100):
        now[0] = 0.02 * i
        logger.warning("rejected %d", i)
    undo()
    assert target.said == [
        ("warning", "rejected 0"),
        ("warning", "rejected 50 (and 49 more like this in between)"),
    ]
