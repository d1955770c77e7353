"""One parameter file for several nodes: whose a key is, and what is said of those of nobody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.planning import policies
from gp_active_sensing.ros.descriptors import leaves_of
from gp_active_sensing.ros.node_base import GuardedNode
from gp_active_sensing.ros.parameters import NODES, ParameterTree
from gp_active_sensing.util.resources import find_resource, list_resources
from tests.cases import case
from tests.ros.conftest import Ros

Problems = Callable[..., str]
BAL: Any = policies.factory("bal")
POLICIES: tuple[Any, ...] = tuple(policies.factory(name) for name in policies.names())


def keys_of(name: str) -> set[str]:
    sections = [{"policy": factory} for factory in POLICIES]
    return {leaf.name for section in sections for leaf in leaves_of(NODES[name], section)}


@pytest.fixture
def problems(ros: Ros, tmp_path: Path) -> Problems:
    def build(name: str, *files: Path | str, words: tuple[str, ...] = ()) -> str:
        arguments = ["--ros-args", *words]
        for number, file in enumerate(files):
            path = file
            if isinstance(file, str):
                path = tmp_path / f"{name}{number}.yaml"
                path.write_text(file, encoding="utf-8")
            arguments += ["--params-file", str(path)]
        node = ros.add(
            GuardedNode(
                name,
                cli_args=arguments,
                automatically_declare_parameters_from_overrides=True,
            )
        )
        tree = ParameterTree(node, NODES[name])
        tree.declare({}, policy=BAL)
        try:
            tree.config()
        except ConfigError as error:
            return str(error)
        return ""

    return build


def test_keys_of_other_nodes_are_passed_over(
    problems: Problems, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in NODES:
        with case(name):
            foreign = set().union(*(keys_of(other) for other in NODES)) - keys_of(name)
            assert len(foreign) > 15
            lines = "".join(f"    {key}: 1\n" for key in sorted(foreign))
            said = problems(name, f"/**:\n  ros__parameters:\n{lines}    wheel_radius: 0.3\n")
            assert "unknown" not in said
            assert "removed" not in said
            assert not any(key in said.split() for key in foreign if "." in key)
            assert "unknown" not in capfd.readouterr().err


def test_no_node_dies_of_a_shipped_file(
    problems: Problems, capfd: pytest.CaptureFixture[str]
) -> None:
    for file in [n for n in list_resources("config") if n.endswith(".yaml")]:
        for name in NODES:
            with case(file, name):
                assert "unknown" not in problems(name, find_resource("config", file))
                assert "unknown" not in capfd.readouterr().err


def test_a_key_that_is_nearly_one_of_ours_is_refused(problems: Problems) -> None:
    for name, key, said in [
        ("bag_player", "listner", "listner: unknown parameter. Did you mean 'listener'?"),
        ("active_sensing", "autostrat", "Did you mean 'autostart'?"),
        ("active_sensing", "budget.reedings", "Did you mean 'budget.readings'?"),
        ("simulator", "speed_facter", "Did you mean 'speed_factor'?"),
    ]:
        with case(name, key, said):
            assert said in problems(name, f"/**: {{ros__parameters: {{{key}: 1}}}}\n")


def test_under_the_node_s_own_name_every_unknown_key_is_refused(problems: Problems) -> None:
    for name, key, said in [
        ("bag_player", "map.features", "map.features: belongs to the node active_sensing, not"),
        ("active_sensing", "speed_factor", "speed_factor: belongs to the node simulator, not"),
        ("simulator", "wheel_radius", "wheel_radius: unknown parameter."),
        ("bag_player", "loop", "loop: unknown parameter."),
        ("bag_player", "journal", "journal: was removed; give listener"),
        ("simulator", "reading.type", "reading.type: was removed; readings are sensor_msgs"),
        ("active_sensing", "budgets", "budgets: unknown parameter."),
    ]:
        with case(name, key, said):
            own = f"/boat/{name}: {{ros__parameters: {{{key}: 1}}}}\n"
            words = ("-r", "__ns:=/boat")
            assert said in problems(name, own, words=words)


def test_a_removed_key_without_effect(
    problems: Problems, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").touch()  # of a mission that is continued
    begun = ("-p", "plan_ahead:=true", "-p", f"run_dir:={tmp_path}")
    assert "plan_ahead" not in problems("active_sensing", words=begun)
    assert "plan_ahead" not in capfd.readouterr().err
    for value, warnings in (("true", 2), ("false", 0)):
        with case(value):
            own = f"active_sensing: {{ros__parameters: {{plan_ahead: {value}}}}}\n"
            assert "plan_ahead" not in problems("active_sensing", own)
            words = ("-p", f"plan_ahead:={value}", "-p", "mission.arrival:=reading")
            assert "arrival" not in problems("active_sensing", words=words)
            assert capfd.readouterr().err.count("plan_ahead: has no effect") == warnings


def test_a_node_of_another_name_is_another_node(problems: Problems) -> None:
    own = "sensing_2: {ros__parameters: {speed_factor: 1.0, budget: {readings: 0}}}\n"
    said = problems("active_sensing", own, words=("-r", "__node:=sensing_2"))
    assert "speed_factor: belongs to the node simulator" in said
    assert "budget.readings: must be 1 or more" in said


def test_what_is_given_for_one_node_and_unknown_is_said(
    problems: Problems, capfd: pytest.CaptureFixture[str]
) -> None:
    assert "wheel" not in problems("simulator", words=("-p", "wheel_radius:=0.3"))
    assert "wheel_radius: unknown parameter. It is not used" in capfd.readouterr().err
