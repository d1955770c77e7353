"""Every launch file, read as the runner reads it: all it names must exist."""

from __future__ import annotations

import dataclasses
import importlib
import re
import runpy
import signal
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gp_active_sensing.config import param_of
from gp_active_sensing.errors import ConfigError, RunError
from gp_active_sensing.planning import policies
from gp_active_sensing.ros import launching, runner
from gp_active_sensing.ros.descriptors import leaves_of
from gp_active_sensing.ros.environment import FAILED, REFUSED
from gp_active_sensing.ros.launching import declarations
from gp_active_sensing.ros.parameters import NODES
from gp_active_sensing.ros.processes import END_SECONDS, KILL_SECONDS, RESPAWN_SECONDS
from gp_active_sensing.ros.runner import Launch, Process, launch_names, read_launch
from gp_active_sensing.util.resources import find_resource, list_resources
from tests.ros.launched import PACKAGE, parameters, processes
from tests.ros.ros2_bag import ros2_bag  # noqa: F401  a fixture

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {"replay": {"bag": "some_bag"}}
OF_ALL_NODES = {"use_sim_time"}
OF_BOTH = {
    *("name", "output", "additional_env", "sigterm_timeout", "sigkill_timeout"),
    *("respawn", "respawn_delay", "on_exit"),
}
OF_NODES = {"package", "executable", "parameters", "remappings", "arguments"}
OF_NODES |= {"namespace", "ros_arguments"}
"""Keywords of ``Node`` and ``ExecuteProcess`` that are known to exist."""
PARAMETER_FILES = [n for n in list_resources("config") if n.endswith(".yaml")]


@dataclasses.dataclass
class Shutdown:
    reason: str = ""


@pytest.fixture(autouse=True)
def shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand for the one action of ``launch`` that follows the end of a process."""
    for name in ("launch", "launch.actions"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    vars(sys.modules["launch.actions"])["Shutdown"] = Shutdown


def ended(process: Process, code: int, *, asked: bool = False) -> list[Any]:
    """Return what follows when a process ends with an exit code, minus n after signal n."""
    context = SimpleNamespace(is_shutdown=asked)
    return process.on_exit(SimpleNamespace(returncode=code), context) or []


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


@pytest.fixture(params=launch_names())
def launch(request: pytest.FixtureRequest) -> Launch:
    return read_launch(request.param)


def started(launch: Launch, **given: str) -> list[Process]:
    return launch.resolve({**NEEDED.get(launch.name, {}), **given})


def with_everything(launch: Launch, folder: Path) -> dict[str, str]:
    """Give every argument a value, so that every parameter and topic is named."""
    given: dict[str, str] = {}
    for argument in declarations(launch.arguments):
        first = argument["choices"][1] if "choices" in argument else "1"
        first = "boat" if argument["name"] == "namespace" else first
        given[argument["name"]] = argument.get("default_value") or first
    truths = ("plan_ahead", "decisions", "use_sim_time", "exit_at_end")
    given |= {name: "true" for name in truths if name in given}
    own = {"rviz": "true", "record": str(folder / "bag")}
    return given | {name: value for name, value in own.items() if name in given}


def test_there_are_three_launch_files_without_a_trace_of_the_stand_ins() -> None:
    assert set(launch_names()) == {"probe", "traffic_sim", "replay"}
    before = {name: sys.modules.get(name) for name in runner.STAND_INS}
    assert processes("probe")
    assert {name: sys.modules.get(name) for name in runner.STAND_INS} == before


@pytest.mark.usefixtures("ros2_bag")
def test_every_executable_parameter_and_file_exists(launch: Launch, tmp_path: Path) -> None:
    scripts = entry_points()
    for process in launch.resolve(with_everything(launch, tmp_path)):
        if process.name == "recorder":
            assert set(vars(process)) == {*OF_BOTH, "cmd"}
            continue
        assert OF_BOTH <= set(vars(process)) <= OF_BOTH | OF_NODES
        assert process.output == "screen"
        words = iter(getattr(process, "arguments", ()))
        pairs = zip(words, words, strict=True)
        assert all(word == "-f" or Path(value).is_file() for word, value in pairs)
        if process.package != PACKAGE:
            assert (process.package, process.executable) == ("rviz2", "rviz2")
            assert not ended(process, 0)
            assert set(parameters(process)) <= OF_ALL_NODES
            continue
        assert process.executable in scripts
        module, function = scripts[process.executable].split(":")
        assert callable(getattr(importlib.import_module(module), function))
        assert set(parameters(process)) - OF_ALL_NODES <= parameters_of(process.executable)
        (file,) = (part for part in process.parameters if isinstance(part, str))
        assert Path(file).is_file()
        assert isinstance(ended(process, 0)[0], Shutdown)
        profile = process.additional_env.get("FASTRTPS_DEFAULT_PROFILES_FILE")
        assert profile is None or Path(profile).is_file()


def test_every_argument_of_a_launch_is_used(launch: Launch) -> None:
    """One that is not would be listed and do nothing."""
    text = find_resource("launch", f"{launch.name}.launch.py").read_text("utf-8")
    text += Path(launching.__file__).read_text("utf-8")
    for field in dataclasses.fields(launch.arguments):
        assert re.search(rf"\b(given|self)\.{field.name}\b", text), field.name


def test_ros2_launch_declares_the_arguments_that_the_runner_knows(launch: Launch) -> None:
    path = find_resource("launch", f"{launch.name}.launch.py")
    with runner.stand_ins():
        description = runpy.run_path(str(path))["generate_launch_description"]()
    *declared, start = description
    assert callable(start.function)
    fields = {field.name: field for field in dataclasses.fields(launch.arguments) if field.init}
    assert [found.name for found in declared] == list(fields)
    for found in declared:
        field = fields[found.name]
        assert found.description == param_of(field).help
        assert hasattr(found, "default_value") is (found.name != "bag")
        if found.name != "bag":
            assert isinstance(found.default_value, str)
            # As in launch: a default outside of the choices is an error.
            assert found.default_value in getattr(found, "choices", [found.default_value])
        assert set(getattr(found, "choices", ())) - {""} == set(param_of(field).choices or ())


def test_policies_to_choose_from_are_those_of_the_registry(launch: Launch) -> None:
    (policy,) = (a for a in declarations(launch.arguments) if a["name"] == "policy")
    assert policy["choices"] == ["", *policies.names()]


def test_a_node_that_crashes_is_started_again_where_that_is_wanted(launch: Launch) -> None:
    if launch.name == "replay":
        assert not hasattr(launch.arguments, "respawn")
        return
    for word, again in (("true", True), ("false", False)):
        nodes = {node.name: node for node in started(launch, respawn=word)}
        node = nodes["active_sensing"]
        assert {n.name for n in nodes.values() if n.respawn} == ({node.name} if again else set())
        assert node.respawn_delay == RESPAWN_SECONDS
        if again:
            assert not ended(node, -9), "killed"
            assert not ended(node, FAILED), "a defect"
        assert ended(node, 0), "it was asked to end"
        with pytest.raises(RunError, match="ended with exit code 2"):
            ended(node, REFUSED)  # and would again
        with pytest.raises(RunError, match="ended with signal SIGKILL"):
            ended(node, -9, asked=True)


def test_a_node_that_failed_makes_the_launch_fail(launch: Launch) -> None:
    """An exception is what makes ``ros2 launch`` end with 1."""
    for code, words in ((-9, "signal SIGKILL"), (1, "exit code 1"), (2, "exit code 2")):
        for number, name in enumerate(node.name for node in started(launch)):
            node = started(launch)[number]
            with pytest.raises(RunError, match=f"{name} ended with {words}"):
                ended(node, code)
            assert ended(node, 0, asked=True), "it is said once"
    for code in (0, -signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGINT):
        assert ended(started(launch)[0], code, asked=True), "as asked, before it hears or after"
    with pytest.raises(RunError):
        ended(started(launch)[0], -signal.SIGINT)


@pytest.mark.usefixtures("ros2_bag")
def test_what_is_not_required_fails_with_the_launch(tmp_path: Path) -> None:
    recorder, sensing = processes("probe", record=str(tmp_path / "bag")).values()
    assert not ended(recorder, FAILED), "the mission goes on"
    with pytest.raises(RunError, match="recorder ended with exit code 1"):
        ended(sensing, 0)
    assert (sensing.sigterm_timeout, sensing.sigkill_timeout) == (
        f"{END_SECONDS:g}",
        f"{KILL_SECONDS:g}",
    )
    recorder, sensing = processes("probe", record=str(tmp_path / "bag")).values()
    assert not ended(recorder, signal.SIGINT, asked=True), "as `ros2` ends"
    assert ended(sensing, 0, asked=True)


def test_a_parameter_file_that_ros_cannot_read_starts_nothing(
    launch: Launch, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("/**:\n  ros__parameters:\n    map: {obstacles: [[0, 0], [5, 5]]}\n")
    with pytest.raises(ConfigError) as error:
        started(launch, params_file=str(path))
    assert f"{path}: line 3: map.obstacles: " in str(error.value)
    assert 'obstacles: "[[0, 0], [5, 5]]"' in str(error.value)


def test_a_launch_with_defaults_sets_nothing_that_was_not_asked_for(launch: Launch) -> None:
    nodes = {node.name: node for node in started(launch)}
    assert not {"rviz2", "recorder"} & set(nodes)
    sensing = parameters(nodes["active_sensing"])
    assert "policy.name" not in sensing
    assert "budget.readings" not in sensing
    assert ("use_sim_time" in sensing) is (launch.name != "probe"), "the file says"


@pytest.mark.parametrize("name", PARAMETER_FILES)
def test_every_key_of_a_parameter_file_is_a_parameter_with_its_unit(name: str) -> None:
    path = find_resource("config", name)
    text = path.read_text(encoding="utf-8")
    nodes = yaml.safe_load(text)
    users = {
        process.name
        for launch in map(read_launch, launch_names())
        for process in started(launch)
        if launch.arguments.params_file == name
    }
    assert users
    for key, content in nodes.items():
        assert list(content) == ["ros__parameters"]
        targets = users if key == "/**" else {key.removeprefix("/**/")}
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


@pytest.mark.parametrize("name", PARAMETER_FILES)
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
                "active_sensing" if key == "/**" else key.removeprefix("/**/"),
                namespace="boat",
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
