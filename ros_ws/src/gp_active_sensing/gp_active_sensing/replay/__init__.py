"""Logged data as a source of readings, without ROS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp_active_sensing.util.lazy import lazy_names

if TYPE_CHECKING:
    from gp_active_sensing.replay.bag import Bag, BagMessage, BagTopic, Loss

__all__ = ["Bag", "BagMessage", "BagTopic", "Loss"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "bag": (
            "Bag",
            "BagMessage",
            "BagTopic",
            "Loss",
        ),
    },
)
