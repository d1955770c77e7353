"""Use logged data as a source of readings, without ROS."""

from gp_active_sensing.replay.bag import Bag, BagMessage, BagTopic, SalvageResult

__all__ = ["Bag", "BagMessage", "BagTopic", "SalvageResult"]
