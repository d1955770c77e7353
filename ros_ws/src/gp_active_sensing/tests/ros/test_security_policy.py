"""config/sros2_policy.xml against the interface that docs/ros.md lists and the nodes have."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gp_active_sensing.ros.simulator_node import SimulatorNode
from gp_active_sensing.util.resources import find_resource
from tests.ros.conftest import Ros, wait_active
from tests.ros.probe import sensing, write_scenario

PREFIX = "/gp_active_sensing/"
Rules = dict[str, set[str]]


def rules(node: str) -> Rules:
    """Return what an enclave of the policy allows, by the word of the attribute; whole names."""
    tree = ElementTree.parse(find_resource("config", "sros2_policy.xml"))
    (enclave,) = tree.findall(f"enclaves/enclave[@path='{PREFIX}{node}']")
    (profile,) = enclave.findall("profiles/profile")
    assert profile.get("node") == node
    found: Rules = {}
    for group in profile:
        for word, value in group.attrib.items():
            assert value == "ALLOW", f"{node}: what is not allowed is denied already"
            names = found.setdefault(word, set())
            for item in group:
                assert item.tag == group.tag.removesuffix("s")
                names.add(whole(str(item.text), node))
    return found


def whole(name: str, node: str) -> str:
    if name.startswith("~/"):
        return f"/{node}/{name[2:]}"
    return name if name.startswith("/") else f"/{name}"


EXPERT = {"/expert/query", "/expert/answer"}
"""Only where a policy asks an expert, and a scenario has one."""
BELOW = {"/rosout"}
"""What rcl publishes for a node, which it does not list itself; transitions are among these too."""


def published(node: Any) -> set[str]:
    """Of the node itself: the graph may not have heard of everything yet."""
    return (
        {p.topic_name for p in node.publishers} | BELOW | {f"/{node.get_name()}/transition_event"}
    )


def subscribed(node: Any) -> set[str]:
    return {s.topic_name for s in node.subscriptions}


def served(node: Any) -> set[str]:
    return {whole(s.srv_name, node.get_name()) for s in node.services}


def test_what_the_nodes_do_is_what_they_may_do(ros: Ros, tmp_path: Path) -> None:
    node = sensing(ros)
    wait_active(node)
    may = rules("active_sensing")
    assert published(node) == may["publish"] - EXPERT
    optional = {"/clock", "/tf", "/tf_static"}
    assert subscribed(node) == may["subscribe"] - optional - EXPERT
    assert served(node) == may["reply"]
    assert may["call"] == {"/navigate_to_pose", "/navigate_through_poses"}
    assert "request" not in may, "it asks nothing of others"
    scenario = write_scenario(tmp_path / "tiny.yaml")
    node = ros.add(SimulatorNode(cli_args=["--ros-args", "-p", f"scenario:={scenario}"]))
    wait_active(node)
    may = rules("simulator")
    assert published(node) == may["publish"] - EXPERT
    assert subscribed(node) == may["subscribe"] - EXPERT
    assert served(node) == may["reply"]
    pytest.importorskip("tornado", reason="the extra [web] is not installed")
    from gp_active_sensing.ros.live_page_node import LivePageNode

    node = ros.add(LivePageNode(cli_args=[]))
    may = rules("live_page")
    assert published(node) == may["publish"]
    assert "subscribe" not in may, "nobody in the network tells it what to show"
    assert subscribed(node) == set()
    assert served(node) == may["reply"]
    assert {whole(c.srv_name, "live_page") for c in node.clients} == may["request"]
    assert may["request"] <= rules("active_sensing")["reply"]


def test_what_one_sends_the_other_hears() -> None:
    sensing_may, probe, operator = (rules(n) for n in ("active_sensing", "probe", "operator"))
    for expert in ("expert", "simulator"):
        may = rules(expert)
        assert EXPERT & may["publish"] == {"/expert/answer"} <= sensing_may["subscribe"]
        assert EXPERT & may["subscribe"] == {"/expert/query"} <= sensing_may["publish"]
    usual = {"/rosout", "/parameter_events"}
    assert probe["publish"] - usual <= sensing_may["subscribe"]
    assert probe["subscribe"] <= sensing_may["publish"]
    assert operator["subscribe"] <= sensing_may["publish"]
    assert operator["request"] == sensing_may["reply"]
    assert probe["request"] <= sensing_may["reply"]
    for player in ("simulator", "bag_player"):
        may = rules(player)
        assert {"/reading", "/pose", "/clock"} <= may["publish"] & sensing_may["subscribe"]
        assert may["subscribe"] <= sensing_may["publish"]
