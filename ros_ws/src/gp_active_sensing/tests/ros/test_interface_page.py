"""docs/ros.md against running nodes: topics, services, states, parameters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rclpy.qos import QoSProfile

from gp_active_sensing.planning import DEFAULT_POLICY
from gp_active_sensing.ros.active_sensing_node import LIVE
from gp_active_sensing.ros.descriptors import READ_ONLY
from gp_active_sensing.ros.to_messages import type_name
from tests.page_tables import PAGE, keys
from tests.ros.conftest import Ros, wait_active
from tests.ros.probe import sensing

if not PAGE.exists():
    pytest.skip("the package lies outside its repository", allow_module_level=True)

OF_EVERY_NODE = {"/parameter_events", "/rosout"}
Topics = dict[str, tuple[str, str]]


def section(title: str) -> str:
    marks, words = title.split(maxsplit=1)
    page = PAGE.read_text("utf-8")
    found = re.search(rf"^{marks} {words}\n(.*?)(?=^#{{1,{len(marks)}}} |\Z)", page, re.M | re.S)
    assert found, title
    return found[1]


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("| ---")
    ]


def names_in(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def shown(kind: Any, profile: QoSProfile) -> tuple[str, str]:
    words = (profile.reliability.name, profile.durability.name)
    return type_name(kind), ", ".join(word.lower().replace("_", " ") for word in words)


def made(entities: Any) -> Topics:
    found = {}
    for entity in entities:
        topic = entity.topic_name
        if topic not in OF_EVERY_NODE:
            absolute = topic in {"/clock", "/diagnostics"}
            name = topic if absolute else topic.lstrip("/").replace("active_sensing/", "~/")
            found[name] = shown(entity.msg_type, entity.qos_profile)
    return found


def written(text: str) -> Topics:
    named = [(names_in(row[0]), row) for row in rows(text)]
    return {name[0]: (names_in(row[1])[0], row[2]) for name, row in named if name}


def parameters_of(node: Any) -> set[str]:
    """Return the names of the parameters that are the node's own; unset ones are among them."""
    foreign = {"use_sim_time", "qos_overrides", "start_type_description_service"}
    return {name for name in node.get_parameters_by_prefix("") if name.split(".")[0] not in foreign}


def test_active_sensing(ros: Ros) -> None:
    defaults = ("pose.reliable:=false", "reading.reliable:=false")
    policy = f"policy.name:={DEFAULT_POLICY['name']}"
    node = sensing(ros, policy, "belief.signal_std:=[1.0]", *defaults)
    wait_active(node)
    assert made(node.publishers) == written(section("### Topics out"))
    assert not {p.topic_name for p in node.publishers} & {"/map", "/plan"}, "Nav2 has these"
    assert made(node.subscriptions) == written(section("### Topics in"))
    # Of the node itself: the graph may not have heard of all of them yet.
    services = {
        s.srv_name.split("/")[-1]
        for s in node.services
        if "parameter" not in s.srv_name and "type_description" not in s.srv_name
    }
    told = {names_in(row[0])[0].removeprefix("~/") for row in rows(section("### Services"))[1:]}
    lifecycle = set(re.findall(r"`~/(\w+)`", section("### Lifecycle")))
    assert "transition_event" in lifecycle
    assert services == told | (lifecycle - {"transition_event"})
    page = section("### Parameters")
    # Those of readings are there for the quantities that are given.
    assert parameters_of(node) == {k for k in keys(page) if k.split(".")[0] != "readings"}
    live, fixed = re.findall(
        r"parameters may change: (.+?)\. Never after the start: (.+?)\. ", " ".join(page.split())
    )[0]
    assert set(names_in(live)) == set(LIVE)
    assert set(names_in(fixed)) == READ_ONLY
