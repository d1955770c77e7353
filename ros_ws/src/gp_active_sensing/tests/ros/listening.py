"""Listening, in a test, to what nodes in other processes publish."""

from __future__ import annotations

from typing import Any

import pytest


class Listener:
    """Keeps what it hears, by topic."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.heard: dict[str, list[Any]] = {}

    def subscribe(self, kind: Any, topic: str, qos: Any = 1000) -> None:
        messages = self.heard.setdefault(topic, [])
        self.node.create_subscription(kind, topic, messages.append, qos)


@pytest.fixture
def listener(ros: Any) -> Listener:
    return Listener(ros.node("listener"))
