from __future__ import annotations

import logging
from types import SimpleNamespace

from gp_active_sensing.ros.node_base import forward_logs


def target_of(said: list[tuple[str, str]]) -> SimpleNamespace:
    levels = ("error", "warning", "info", "debug")
    kept = {level: lambda text, level=level: said.append((level, text)) for level in levels}
    return SimpleNamespace(**kept, is_enabled_for=lambda severity: False)


def test_levels_are_kept_and_the_forwarding_ends() -> None:
    said: list[tuple[str, str]] = []
    undo = forward_logs(target_of(said))
    logger = logging.getLogger("gp_active_sensing.loop")
    logger.info("one %d", 1)
    logger.warning("two")
    logger.error("three")
    undo()
    logger.error("four")
    assert said == [("info", "one 1"), ("warning", "two"), ("error", "three")]


def test_repeated_warnings_are_said_once_a_second_and_counted() -> None:
    said: list[tuple[str, str]] = []
    now = [0.0]
    undo = forward_logs(target_of(said), lambda: now[0])
    logger = logging.getLogger("gp_active_sensing.loop")
    for i in range(100):
        now[0] = 0.02 * i
        logger.warning("rejected %d", i)
    undo()
    assert said == [
        ("warning", "rejected 0"),
        ("warning", "rejected 50 (and 49 more like this in between)"),
    ]
