"""The argument ``probes`` of the launches: a number or names, and topics in each namespace."""

from __future__ import annotations

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.ros.runner import Process
from tests.ros.launched import parameters
from tests.ros.launched import processes as nodes


def remappings(process: Process) -> dict[str, str]:
    return dict(process.remappings)


def test_a_number_names_the_probes_of_both_nodes() -> None:
    runs = nodes("traffic_sim", probes="2")
    for name in ("simulator", "active_sensing"):
        assert parameters(runs[name])["probes"] == ["probe_1", "probe_2"]
    assert 'probes:=["probe_1", "probe_2"]' in runs["simulator"].command()


def test_without_it_there_is_one_without_a_namespace() -> None:
    for launch in ("traffic_sim", "probe"):
        assert all("probes" not in parameters(run) for run in nodes(launch).values())


def test_the_topics_of_a_probe_are_parameters() -> None:
    given = {"pose_topic": "odom", "waypoint_topic": "goal_pose", "reading_topic": "/t"}
    found = nodes("probe", **given)["active_sensing"]
    names = {key: parameters(found)[f"{key}.topic"] for key in ("pose", "waypoint", "reading")}
    assert names == {"pose": "odom", "waypoint": "goal_pose", "reading": "/t"}
    assert remappings(found) == {}
    plain = parameters(nodes("probe")["active_sensing"])
    assert not [name for name in plain if name.endswith(".topic")], "the file says"


VIEWS = {
    "map_topic": "~/map",
    "field_topic": "~/field",
    "plan_topic": "~/plan",
    "probes_topic": "~/probes",
    "belief_topic": "~/length_scale_belief",
}


@pytest.mark.parametrize("launch", ["probe", "traffic_sim", "replay"])
def test_what_is_looked_at_may_have_another_name(launch: str) -> None:
    needed = {"bag": "some"} if launch == "replay" else {}
    plain = remappings(nodes(launch, **needed)["active_sensing"])
    assert not set(VIEWS.values()) & set(plain), "private unless asked for"
    given = {argument: f"/show/{topic[2:]}" for argument, topic in VIEWS.items()}
    found = nodes(launch, rviz="true", **needed, **given)
    seen = {topic: remappings(found["active_sensing"])[topic] for topic in VIEWS.values()}
    assert seen == {topic: f"/show/{topic[2:]}" for topic in VIEWS.values()}
    shown = {topic: remappings(found["rviz2"])[f"/active_sensing/{topic[2:]}"] for topic in seen}
    shown.pop("~/length_scale_belief")
    assert shown.items() <= seen.items(), "RViz looks where the node publishes"


def test_plans_of_several_probes_are_below_the_node_or_in_each_namespace() -> None:
    for other, first in (("~/way", "~/a/way"), ("way", "a/way")):
        found = nodes("probe", probes="a,b", plan_topic=other, map_topic="/shown")
        assert remappings(found["active_sensing"]) == {
            "~/a/plan": first,
            "~/b/plan": first.replace("a/", "b/"),
            "~/map": "/shown",
        }
    alone = nodes("probe", plan_topic="~/way", rviz="true")
    assert remappings(alone["active_sensing"]) == {"~/plan": "~/way"}
    assert remappings(alone["rviz2"]) == {"/active_sensing/plan": "active_sensing/way"}


def test_there_is_one_expert_for_all() -> None:
    for probes in ("", "a,b"):
        given = {"query_topic": "/stations/query", "answer_topic": "expert/answer"}
        found = remappings(nodes("probe", probes=probes, **given)["active_sensing"])
        assert found["expert/query"] == "/stations/query"
        assert "expert/answer" not in found


def test_one_topic_for_several_probes_is_refused() -> None:
    problem = r"/(odom|way): several probes cannot share a topic; .*a/(odom|way)"
    with pytest.raises(ConfigError, match=problem):
        nodes("probe", probes="a,b", plan_topic="/way")
    given = {"map": {"kind": "line", "count": 3}, "pose": {"topic": "/odom"}}
    with pytest.raises(ConfigError, match=problem):
        from_mapping(ActiveSensingConfig, {**given, "probes": ["a", "b"]})
    assert from_mapping(ActiveSensingConfig, {**given, "probes": ["a"]}).topics == (
        "reading",
        "/odom",
        "next_waypoint",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [("0", "cannot be a namespace"), ("a,a", "comes more than once"), ("a;b", "cannot be")],
)
def test_what_cannot_be_a_name_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"launch: probes: .*{problem}"):
        nodes("traffic_sim", probes=text)
