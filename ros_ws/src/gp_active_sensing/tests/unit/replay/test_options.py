from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import yaml

from gp_active_sensing.config import to_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.mission.stream_config import PoseConfig
from gp_active_sensing.replay.options import ReplayOptions, settled, topics_of
from gp_active_sensing.replay.recording import Recording
from gp_active_sensing.replay.topics import Topics
from gp_active_sensing.topology import MapConfig
from gp_active_sensing.util.resources import find_resource

HELD = {"/car/odom": "nav_msgs/msg/Odometry", "/car/speed": "std_msgs/msg/Float64"}


def decided(
    given: ReplayOptions, base: Recording | None = None, *, follow: bool = True
) -> ActiveSensingConfig:
    return settled(given, base, HELD, follow=follow)[0]


def test_the_shipped_parameter_file_of_a_robot_works() -> None:
    shipped = find_resource("config", "probe.yaml")
    with pytest.raises(ConfigError, match=r"map\.kind: is required where no file says it"):
        decided(ReplayOptions(params=shipped))
    config = decided(ReplayOptions(params=shipped, map_file="town"))
    assert config.map.file == "town"
    assert config.budget.readings == 100, "what the file says, stays"
    assert config.mission.follow == "probe"


def test_later_layers_win(tmp_path: Path) -> None:
    file = tmp_path / "boat.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "/**": {"ros__parameters": {"scenario": "line", "seed": 3}},
                "active_sensing": {
                    "ros__parameters": {
                        "policy.name": "ie",
                        "reading.scale": 2.0,
                        "limit": {"seconds": float("nan")},
                    }
                },
                "simulator": {"ros__parameters": {"speed_factor": 2.0}},
            }
        )
    )
    given = ReplayOptions(
        params=file, reading_topic="/car/speed", reading_field="data", expansions=7
    )
    config = decided(given)
    assert config.policy == {"name": "ie"}, "not the parameters of another policy"
    assert (config.seed, config.reading.scale, config.reading.type) == (
        3,
        2.0,
        "std_msgs/msg/Float64",
    )
    assert (config.limit.seconds, config.limit.expansions) == (None, 7)
    over = decided(
        ReplayOptions(params=file, policy="random", seed=5, overrides=("reading.scale=4", "seed=6"))
    )
    assert (over.policy, over.reading.scale, over.seed) == ({"name": "random"}, 4.0, 6)


def test_a_scenario_s_budget_is_for_a_probe_that_obeys() -> None:
    assert decided(ReplayOptions(scenario="town")).budget.readings is None
    assert decided(ReplayOptions(scenario="town"), follow=False).budget.readings == 60
    assert decided(ReplayOptions(scenario="town", budget=7)).budget.readings == 7
    assert decided(ReplayOptions(scenario="town")).limit.expansions == 800


def test_the_bag_s_own_configuration_is_the_base() -> None:
    own = to_mapping(
        ActiveSensingConfig(
            MapConfig("grid", columns=3, rows=2), seed=9, policy={"name": "bal", "horizon": 2}
        )
    )
    base = Recording(own, None, {"": Topics("/r", "/p")})
    assert decided(ReplayOptions(), base).policy == {"name": "bal", "horizon": 2}
    other = decided(ReplayOptions(policy="ie", overrides=("seed=1",)), base)
    assert (other.policy, other.seed, other.map.columns) == ({"name": "ie"}, 1, 3)
    assert decided(ReplayOptions(scenario="town"), base).map.kind == "roads", (
        "a scenario is another base"
    )
    assert topics_of(ReplayOptions(), base, decided(ReplayOptions(map_file="town"))) == {
        "": Topics("/r", "/p")
    }


def test_topics_of_several_probes_are_in_their_namespaces() -> None:
    given = ReplayOptions(reading_topic="speed")
    config = dataclasses.replace(decided(ReplayOptions(map_file="town")), probes=("a", "b"))
    assert topics_of(given, None, config) == {
        "a": Topics("/a/speed", "/a/pose"),
        "b": Topics("/b/speed", "/b/pose"),
    }
    named = dataclasses.replace(config, pose=PoseConfig(topic="odom"))
    assert topics_of(given, None, named)["b"] == Topics("/b/speed", "/b/odom")
    with pytest.raises(ConfigError, match="is one topic and there are 2 probes"):
        topics_of(ReplayOptions(pose_topic="/odom"), None, config)
