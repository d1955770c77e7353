"""Every launch file, executed against a stand-in: all it names must exist."""

from __future__ import annotations

import ast
import importlib
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gp_active_sensing.errors import ConfigError, RunError
from gp_active_sensing.planning import policies
from gp_active_sensing.ros.descriptors import leaves_of
from gp_active_sensing.ros.exit_codes import FAILED, REFUSED
from gp_active_sensing.ros.launches import LAUNCHES, launch_spec
from gp_active_sensing.ros.launching import (
    END_SECONDS,
    KILL_SECONDS,
    PACKAGE,
    RESPAWN_SECONDS,
    resolve,
)
from gp_active_sensing.ros.owners import NODES
from gp_active_sensing.util.resources import find_resource, list_resources
from tests.ros import fake_launch

ROOT = Path(__file__).resolve().parents[2]
LAUNCH_FILES = sorted((ROOT / "launch").glob("*.launch.py"))
NEEDED = {"replay": {"bag": "some_bag"}}
OF_ALL_NODES = {"use_sim_time"}


def parameters_of(executable: str) -> set[str]:
    any_policy: set[str] = set()
    for name in policies.names():
        factory: Any = policies.factory(name)
        if executable == "active_sensing":
            leaves = leaves_of(NODES[executable], {"policy": factory})
            any_policy |= {leaf.name for leaf in leaves if leaf.name.startswith("policy.")}
    return {leaf.name for leaf in leaves_of(NODES[executable], {"policy": None})} | any_policy


def entry_points() -> dict[str, str]:
    """Read the console scripts out of setup.py (f-strings of one name) without running it."""
    text = (ROOT / "setup.py").read_text(encoding="utf-8").replace("{NAME}", PACKAGE)
    return dict(re.findall(r'f"([\w-]+) = ([\w.]+:\w+)"', text))


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found.update(flat(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found


@pytest.fixture(params=LAUNCH_FILES, ids=lambda path: path.name)
def launch_file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake_launch.install(monkeypatch)
    assert isinstance(request.param, Path)
    return request.param


def name_of(launch_file: Path) -> str:
    return launch_file.name.removesuffix(".launch.py")


def with_everything(description: fake_launch.LaunchDescription) -> dict[str, str]:
    """Give every argument a value, so that every parameter and topic is named."""
    given: dict[str, str] = {}
    for name, argument in fake_launch.declared(description).items():
        if argument.default_value:
            given[name] = argument.default_value
        elif argument.choices:
            given[name] = next(choice for choice in argument.choices if choice)
        else:
            given[name] = "1"
    return {**given, "rviz": "true"}


def test_there_is_one_file_for_each_launch() -> None:
    assert {name_of(path) for path in LAUNCH_FILES} == set(LAUNCHES)
    assert {"probe", "traffic_sim", "replay"} <= set(LAUNCHES)


def test_launch_files_are_thin(launch_file: Path) -> None:
    text = launch_file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 30
    imported = {n.module for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)}
    assert imported <= {
        "launch",
        "gp_active_sensing.ros.launch_description",
        "gp_active_sensing.ros.launches",
    }


def test_every_executable_parameter_and_file_exists(launch_file: Path) -> None:
    description = fake_launch.describe(launch_file)
    nodes = fake_launch.run(description, **with_everything(description))
    scripts = entry_points()
    assert nodes
    for node in nodes:
        assert node.output == "screen"
        assert node.name
        for argument in node.arguments:
            assert argument.startswith("-") or Path(argument).is_file()
        if node.package != PACKAGE:
            assert (node.package, node.executable) == ("rviz2", "rviz2")
            assert not node.ended(0)
            assert set(node.parameters) <= OF_ALL_NODES
            continue
        assert node.executable in scripts
        module, function = scripts[node.executable].split(":")
        assert callable(getattr(importlib.import_module(module), function))
        assert set(node.parameters) - OF_ALL_NODES <= parameters_of(node.executable)
        assert node.parameter_files
        assert all(Path(file).is_file() for file in node.parameter_files)
        ends_all = any(isinstance(action, fake_launch.Shutdown) for action in node.ended(0))
        assert ends_all is (node.executable != "bag_recorder")
        profile = node.additional_env.get("FASTRTPS_DEFAULT_PROFILES_FILE")
        assert profile is None or Path(profile).is_file()


def test_arguments_are_declared_as_the_runner_knows_them(launch_file: Path) -> None:
    spec = launch_spec(name_of(launch_file))
    arguments = fake_launch.declared(fake_launch.describe(launch_file))
    assert list(arguments) == [argument.name for argument in spec.arguments]
    for argument in spec.arguments:
        found = arguments[argument.name]
        assert found.default_value == (None if argument.required else argument.default)
        assert set(found.choices or ()) - {""} == set(argument.choices)


def test_policies_to_choose_from_are_those_of_the_registry(launch_file: Path) -> None:
    policy = fake_launch.declared(fake_launch.describe(launch_file))["policy"]
    assert set(policy.choices or ()) - {""} == set(policies.names())


def test_the_launch_and_the_runner_start_the_same(launch_file: Path) -> None:
    description = fake_launch.describe(launch_file)
    given = with_everything(description)
    nodes = fake_launch.run(description, **given)
    runs = resolve(launch_spec(name_of(launch_file)), given)
    assert [node.name for node in nodes] == [run.spec.name for run in runs]
    for node, run in zip(nodes, runs, strict=True):
        assert node.parameters == run.parameters
        assert node.remappings == run.remappings


def test_a_node_that_crashes_is_started_again_where_that_is_wanted(launch_file: Path) -> None:
    description = fake_launch.describe(launch_file)
    if "respawn" not in fake_launch.declared(description):
        assert name_of(launch_file) == "replay"
        return
    for word, again in (("true", True), ("false", False)):
        nodes = {node.name: node for node in fake_launch.run(description, respawn=word)}
        node = nodes["active_sensing"]
        assert {n.name for n in nodes.values() if n.respawn} == ({node.name} if again else set())
        assert node.respawn_delay == RESPAWN_SECONDS
        if again:
            assert not node.ended(-9), "killed"
            assert not node.ended(FAILED), "a defect"
        assert node.ended(0), "it was asked to end"
        with pytest.raises(RunError, match="ended with exit code 2"):
            node.ended(REFUSED)  # and would again
        with pytest.raises(RunError, match="ended with signal SIGKILL"):
            node.ended(-9, asked=True)


def test_a_node_that_failed_makes_the_launch_fail(launch_file: Path) -> None:
    """An exception is what makes ``ros2 launch`` end with 1."""
    given = NEEDED.get(name_of(launch_file), {})
    names = [n.name for n in fake_launch.run(fake_launch.describe(launch_file), **given)]
    for code, words in ((-9, "signal SIGKILL"), (1, "exit code 1"), (2, "exit code 2")):
        for number, name in enumerate(names):
            node = fake_launch.run(fake_launch.describe(launch_file), **given)[number]
            with pytest.raises(RunError, match=f"{name} ended with {words}"):
                node.ended(code)
            assert node.ended(0, asked=True), "it is said once"
    for code in (0, -signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGINT):
        assert fake_launch.run(fake_launch.describe(launch_file), **given)[0].ended(
            code, asked=True
        ), "as it was asked to, before it listens to signals or after"
    with pytest.raises(RunError):
        fake_launch.run(fake_launch.describe(launch_file), **given)[0].ended(-signal.SIGINT)


def test_what_is_not_required_fails_with_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_launch.install(monkeypatch)
    description = fake_launch.describe(ROOT / "launch" / "probe.launch.py")
    sensing, recorder = fake_launch.run(description, record="a_bag")
    assert not recorder.ended(REFUSED), "the mission goes on"
    with pytest.raises(RunError, match="bag_recorder ended with exit code 2"):
        sensing.ended(0)
    assert sensing.timeouts == (END_SECONDS, KILL_SECONDS)


def test_a_parameter_file_that_ros_cannot_read_starts_nothing(
    launch_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("/**:\n  ros__parameters:\n    map: {obstacles: [[0, 0], [5, 5]]}\n")
    description = fake_launch.describe(launch_file)
    given = NEEDED.get(name_of(launch_file), {})
    with pytest.raises(ConfigError) as error:
        fake_launch.run(description, **given, params_file=str(path))
    assert f"{path}: line 3: map.obstacles: " in str(error.value)
    assert 'obstacles: "[[0, 0], [5, 5]]"' in str(error.value)


def test_a_launch_with_defaults_sets_nothing_that_was_not_asked_for(launch_file: Path) -> None:
    name = name_of(launch_file)
    nodes = fake_launch.run(fake_launch.describe(launch_file), **NEEDED.get(name, {}))
    assert "rviz2" not in {node.name for node in nodes}
    sensing = next(node for node in nodes if node.name == "active_sensing")
    assert "policy.name" not in sensing.parameters
    assert "budget.readings" not in sensing.parameters
    assert sensing.parameters["use_sim_time"] is (name != "probe")


@pytest.mark.parametrize("name", [n for n in list_resources("config") if n.endswith(".yaml")])
def test_every_key_of_a_parameter_file_is_a_parameter_with_its_unit(name: str) -> None:
    path = find_resource("config", name)
    text = path.read_text(encoding="utf-8")
    nodes = yaml.safe_load(text)
    users = {
        node.name
        for spec in LAUNCHES.values()
        for node in spec.nodes
        for argument in spec.arguments
        if argument.name == "params_file" and argument.default == name and node.package == PACKAGE
    }
    assert users
    for key, content in nodes.items():
        assert list(content) == ["ros__parameters"]
        targets = users if key == "/**" else {key}
        assert targets <= users
        known = set().union(*(parameters_of(target) for target in targets))
        assert set(flat(content["ros__parameters"])) <= known
    for line in text.splitlines():
        bare = line.strip()
        is_value = re.match(r"^[\w]+: +[^#\s]", bare) is not None
        if is_value:
            assert " # " in line


def test_the_discovery_profile_is_xml_with_what_makes_discovery_quick() -> None:
    from xml.etree import ElementTree

    tree = ElementTree.parse(find_resource("config", "fastdds.xml"))
    space = "{http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles}"
    assert tree.getroot().tag == f"{space}dds"
    participant = tree.find(f".//{space}participant")
    assert participant is not None
    assert participant.get("is_default_profile") == "true"
    count = tree.findtext(f".//{space}initialAnnouncements/{space}count")
    assert count == "50"


@pytest.mark.parametrize("name", [n for n in list_resources("config") if n.endswith(".yaml")])
def test_rcl_itself_reads_every_parameter_file(name: str) -> None:
    """Its YAML is older than Python's: a bare y is a truth value, and lists have one type."""
    path = find_resource("config", name)
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    import rclpy
    from rclpy.context import Context

    context = Context()
    rclpy.init(args=["--ros-args", "--params-file", str(path)], context=context)
    try:
        for key, section in content.items():
            node = rclpy.create_node(
                "active_sensing" if key == "/**" else key,
                context=context,
                automatically_declare_parameters_from_overrides=True,
                start_parameter_services=False,
            )
            for parameter, value in flat(section["ros__parameters"]).items():
                found = node.get_parameter(parameter).value
                same = (list(found) if isinstance(value, list) else found) == value
                assert same or (found != found and value != value), parameter  # NaN takes back
            node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
