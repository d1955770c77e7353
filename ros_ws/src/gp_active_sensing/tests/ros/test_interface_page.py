"""docs/ros.md against running nodes: topics, services, states, parameters."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from gp_active_sensing.planning import DEFAULT_POLICY
from gp_active_sensing.ros.active_sensing_node import LIVE
from gp_active_sensing.ros.bag_player_node import BagPlayer
from gp_active_sensing.ros.descriptors import READ_ONLY
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.simulator_node import SimulatorNode
from gp_active_sensing.ros.to_messages import type_name
from tests.page_tables import NODES, PAGE, keys
from tests.ros.conftest import Ros, wait_active, wait_until
from tests.ros.probe import Probe, sensing, write_scenario

pytestmark = pytest.mark.ros
if not PAGE.exists():
    pytest.skip("the package lies outside its repository", allow_module_level=True)

OF_EVERY_NODE = {"/parameter_events", "/rosout"}
Topics = dict[str, tuple[str, str]]
_NUMBERS = {3: "three", 4: "four", 5: "five"}


def section(title: str) -> str:
    """Return a section of the page, with the sections inside it."""
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


def managed(node: Any) -> bool:
    """Whether a node has a lifecycle, as the page says of all."""
    assert f"All {_NUMBERS[len(NODES)]} nodes are managed" in section("### Lifecycle")
    return isinstance(node, LifecycleNode)


def shown(kind: Any, profile: QoSProfile) -> tuple[str, str]:
    words = (profile.reliability.name, profile.durability.name)
    return type_name(kind), ", ".join(word.lower().replace("_", " ") for word in words)


def made(entities: Any) -> Topics:
    """Return what a node publishes or subscribes, by the name that the page has for it."""
    found = {}
    for entity in entities:
        topic = entity.topic_name
        if topic not in OF_EVERY_NODE:
            absolute = topic in {"/clock", "/diagnostics"}
            name = topic if absolute else topic.lstrip("/").replace("active_sensing/", "~/")
            found[name] = shown(entity.msg_type, entity.qos_profile)
    return found


def written(text: str, direction: str = "") -> Topics:
    """Return the topics of a table of the page."""
    found = {}
    for row in rows(text):
        cells = row[1:] if direction else row
        if (not direction or row[0] == direction) and (name := names_in(cells[0])):
            found[name[0]] = (names_in(cells[1])[0], cells[2])
    return found


def parameters_of(node: Any) -> set[str]:
    """Return the names of the parameters that are the node's own; unset ones are among them."""
    foreign = {"use_sim_time", "qos_overrides", "start_type_description_service"}
    return {name for name in node.get_parameters_by_prefix("") if name.split(".")[0] not in foreign}


def parameters_in(text: str) -> set[str]:
    return set(keys(text.split("<!-- generated: parameters ")[1].split("<!-- end -->")[0]))


def statuses(ros: Ros) -> dict[str, set[str]]:
    """Listen to /diagnostics; return the keys of each status as they come."""
    heard: dict[str, set[str]] = {}

    def listen(message: DiagnosticArray) -> None:
        heard.update({s.name: {item.key for item in s.values} for s in message.status})

    ros.node().create_subscription(DiagnosticArray, "/diagnostics", listen, 10)
    return heard


def test_active_sensing(ros: Ros) -> None:
    node = sensing(ros, f"policy.name:={DEFAULT_POLICY['name']}", "belief.signal_std:=[1.0]")
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
    assert managed(node)
    page = section("### Parameters")
    # Those of readings are there for the quantities that are given.
    assert parameters_of(node) == {k for k in keys(page) if k.split(".")[0] != "readings"}
    live, fixed = re.findall(
        r"parameters may change: (.+?)\. Never after the start: (.+?)\. ", " ".join(page.split())
    )[0]
    assert set(names_in(live)) == set(LIVE)
    assert set(names_in(fixed)) == READ_ONLY


def test_diagnostics(ros: Ros) -> None:
    sensing(ros, "belief.signal_std:=[1.0]")
    probe = Probe(ros).connect()
    probe.obedient = True
    probe.pose(0.0)
    wait_until(lambda: probe.values.get("horizon"), "a decision in /diagnostics")
    told = {name for row in rows(section("### Diagnostics")) for name in names_in(row[2])}
    keys = set(probe.values)
    for name in sorted(told):
        if name.endswith("…"):
            continue
        assert name in keys | {"count", "median_ms", "p99_ms", "max_ms"}, name
    for key in keys:
        general = any(n.endswith("…") and key.startswith(n[:-1]) for n in told)
        assert key in told or general, f"{key} is not on the page"


def test_several_probes(ros: Ros) -> None:
    text = section("### Several probes")
    told = set(names_in(" ".join(row[0] for row in rows(text))))
    assert "probe_1/pose" in told
    node = sensing(ros, "belief.signal_std:=[1.0]", "probes:=[probe_1, probe_2]")
    wait_active(node)
    topics = made([*node.publishers, *node.subscriptions])
    whole = written(section("### Topics in")) | written(section("### Topics out"))
    own = {name for name in topics if name.startswith(("probe_1/", "~/probe_1/"))}
    assert own == {"~/probe_1/plan", *(name for name in told if name.startswith("probe_1/"))}
    alone = {name.replace("probe_1/", "") for name in own}
    for name in own:
        assert topics[name.replace("1", "2")] == whole[name.replace("probe_1/", "")]
    shared = {name for name in topics if "/" not in name.removeprefix("~").strip("/")}
    assert shared == {*whole} - alone
    services = {re.sub("^(/?active_sensing|~)/", "", s.srv_name) for s in node.services}
    private = {n for n in told if n.startswith("~/")}
    assert {n.removeprefix("~/") for n in private - own} <= services
    heard = statuses(ros)
    status = "active_sensing: probe probe_1"
    assert status in told
    wait_until(lambda: status in heard, "the probe's status")
    (row,) = (row for row in rows(text) if status in row[0])
    always = row[1].split("; where there are any")[0]
    assert set(names_in(always)) - {"/diagnostics"} == heard[status]
    assert "probes" in heard["active_sensing: mission"]
    states = {name for row in rows(text) for name in names_in(row[0]) if len(row) == 2}
    assert {"absent", "deciding", "driving", "resting", "going home", "home", "silent", "left"} <= (
        states
    )


def test_an_expert(ros: Ros, tmp_path: Path) -> None:
    text = section("### An expert")
    node = sensing(ros, "belief.signal_std:=[1.0]", "policy.name:=sparq_gp_ucb")
    wait_active(node)
    told = {name: row for name, row in written(text).items() if name.startswith("expert/")}
    whole = written(section("### Topics in")) | written(section("### Topics out"))
    assert made([*node.publishers, *node.subscriptions]) == whole | told
    scenario = tmp_path / "tiny.yaml"
    plain = write_scenario(scenario).read_text("utf-8")
    scenario.write_text(f"{plain}expert: {{kind: model}}\n", "utf-8")
    world = ros.add(SimulatorNode(cli_args=["--ros-args", "-p", f"scenario:={scenario}"]))
    wait_active(world)
    found = made([*world.publishers, *world.subscriptions])
    assert {name: row for name, row in found.items() if "expert" in name} == told
    heard = statuses(ros)
    status = "active_sensing: expert"
    wait_until(lambda: status in heard, "the expert's status")
    (row,) = (row for row in rows(text) if status in row[0])
    always = {key for key in heard[status] if not key.startswith("rejected_")}
    assert {n for n in names_in(row[3]) if n != "rejected_…"} == always


def test_simulator(ros: Ros, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "tiny.yaml")
    arguments = ["--ros-args", "-p", f"scenario:={scenario}", "-p", "exit_at_end:=true"]
    node = ros.add(SimulatorNode(cli_args=arguments))
    wait_active(node)
    text = section("## simulator")
    assert managed(node)
    assert made(node.publishers) == written(text, "out")
    assert made(node.subscriptions) == written(text, "in")
    assert parameters_of(node) == parameters_in(text)


def test_bag_player(ros: Ros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rosbags", reason="the extra [bag] is not installed")
    from tests.replay.bags import message, write_bag

    notes = [
        (topic, 10**9, message("std_msgs/msg/String", data="x")) for topic in ("/note", "/kept")
    ]
    bag = write_bag(tmp_path / "bag", notes, latched=("/kept",))
    # The node itself takes its parameters from the command line of its process only.
    given = ["--ros-args", "-p", f"bag:={bag}", "-p", "wait:=60.0"]
    options = functools.partialmethod(GuardedNode.__init__, cli_args=given)
    monkeypatch.setattr(GuardedNode, "__init__", options)
    node = ros.add(BagPlayer())
    text = section("## bag_player")
    assert managed(node)
    found = made(node.publishers)
    string = "std_msgs/msg/String"
    assert found.pop("note") == (string, "reliable, volatile")
    assert found.pop("kept") == (string, "reliable, transient local")
    assert found == {name: row for name, row in written(text, "out").items() if name == "/clock"}
    assert made(node.subscriptions) == written(text, "in")
    assert parameters_of(node) == parameters_in(text)


def test_live_page(ros: Ros, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tornado", reason="the extra [web] is not installed")
    from gp_active_sensing.ros.live_page_node import LivePageNode

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    node = ros.add(LivePageNode(cli_args=[]))
    text = section("## live_page")
    assert managed(node)
    assert made(node.publishers) == made(node.subscriptions) == {}
    assert parameters_of(node) == parameters_in(text)
