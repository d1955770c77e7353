"""The three launches: their arguments, the processes they start, the runner, the launch files."""

from __future__ import annotations

import importlib
import json
import re
import runpy
import signal
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gp_active_sensing.errors import (
    ConfigError,
    MissingDependencyError,
    ResourceError,
    RunError,
    UnknownNameError,
)
from gp_active_sensing.ros.environment import FAILED, REFUSED
from gp_active_sensing.ros.launches import LAUNCHES, PACKAGE, declarations, find_launch
from gp_active_sensing.ros.runner import (
    RESPAWN_SECONDS,
    child_environment,
    command_of,
    main,
    make_group,
    parse_arguments,
)
from gp_active_sensing.util.resources import find_resource
from gp_active_sensing.web.serve import can_serve
from tests.ros.launched import parameters, processes
from tests.ros.test_owners import keys_of

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {"replay": {"bag": "some_bag"}}
GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
MISSION = """\
/**:
  ros__parameters:
    use_sim_time: true
    map: {{kind: grid, columns: 4, rows: 2, spacing: 10.0, frame: lake}}
    reading.topic: {0}ctd/temperature
    pose.topic: {0}odometry/filtered
    waypoint: {{topic: goal_pose}}
"""

# -- what is started ------------------------------------------------------------------------------


def with_everything(name: str, folder: Path) -> dict[str, str]:
    """Give every argument a value, so that every parameter and topic is named."""
    given: dict[str, str] = {}
    for argument in declarations(LAUNCHES[name]):
        first = argument["choices"][1] if "choices" in argument else "1"
        given[argument["name"]] = argument.get("default_value") or first
    truths = ("decisions", "use_sim_time", "exit_at_end")
    given |= {name: "true" for name in truths if name in given}
    own = {"namespace": "boat", "rviz": "true"}
    own["web"] = "true" if can_serve() else "false"
    return given | {name: value for name, value in own.items() if name in given}


@pytest.mark.parametrize("name", LAUNCHES)
def test_every_executable_parameter_and_file_exists(name: str, tmp_path: Path) -> None:
    text = (ROOT / "setup.py").read_text(encoding="utf-8").replace("{NAME}", PACKAGE)
    scripts = dict(re.findall(r'f"([\w-]+) = ([\w.]+:\w+)"', text))
    found = processes(name, **with_everything(name, tmp_path))
    assert {"active_sensing", "rviz2"} <= set(found)
    for process in found.values():
        assert process.required is (process.name not in ("live_page", "rviz2"))
        if process.package != PACKAGE:
            continue
        module, function = scripts[process.executable].split(":")
        assert callable(getattr(importlib.import_module(module), function))
        assert set(parameters(process)) <= keys_of(process.executable) | {"use_sim_time"}
        assert process.name == "live_page" or Path(process.params_file).is_file()


def test_defaults_set_nothing_that_was_not_asked_for() -> None:
    for process in processes("traffic_sim", probes="2").values():
        assert parameters(process)["probes"] == ["probe_1", "probe_2"]
    for name in LAUNCHES:
        found = processes(name, **NEEDED.get(name, {}))
        assert not {"rviz2", "live_page"} & set(found)
        given = parameters(found["active_sensing"])
        assert not {"policy.name", "budget.readings", "probes", "pose.topic"} & set(given)
        assert ("use_sim_time" in given) is (name != "probe"), "the file says"
    empty = processes("traffic_sim", scenario="", exit_at_end="")["active_sensing"]
    assert parameters(empty) == {"use_sim_time": True}


def test_common_arguments_reach_every_process() -> None:
    given = {"namespace": "/lake/boat", "log_level": "warn", "map_frame": "odom", "rviz": "true"}
    for name in LAUNCHES:
        found = processes(name, **NEEDED.get(name, {}), **given)
        for process in found.values():
            assert (process.namespace, process.log_level) == ("/lake/boat", "warn")
        assert parameters(found["active_sensing"])["map.frame"] == "odom"
        if name == "traffic_sim":
            assert parameters(found["simulator"])["map_frame"] == "odom"
        view = found["rviz2"]
        assert view.arguments[-2:] == ("-f", "odom")
        moved = dict(view.remappings)
        assert moved["/active_sensing/field"] == "active_sensing/field", "below the namespace"
        assert moved["/next_waypoint"] == "next_waypoint"


def test_the_file_says_what_no_argument_says(tmp_path: Path) -> None:
    path = tmp_path / "mission.yaml"
    path.write_text(MISSION.format("/"), encoding="utf-8")
    sensing, view = processes("probe", params_file=str(path), rviz="true").values()
    assert parameters(sensing) == {}
    assert view.arguments[-2:] == ("-f", "lake")
    assert view.remappings == (("/next_waypoint", "goal_pose"),)
    assert view.parameters == {"use_sim_time": True}
    (other,) = processes("probe", params_file=str(path), pose_topic="odom").values()
    assert parameters(other) == {"pose.topic": "odom"}
    player = processes("replay", bag="some", params_file=str(path))["bag_player"]
    assert parameters(player)["topics"] == ["/ctd/temperature", "/odometry/filtered"]


# -- what is refused ------------------------------------------------------------------------------


def test_all_wrong_arguments_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        processes("traffic_sim", polcy="bal", policy="ball", budget="many", rviz="perhaps")
    text = str(caught.value)
    for name in ("polcy", "policy", "budget", "rviz"):
        assert f"{name}: " in text
    assert "Did you mean 'policy'?" in text
    assert "Did you mean 'bal'?" in text


def test_what_an_argument_cannot_be() -> None:
    for launch, given, problem in (
        ("replay", {}, "bag: is required"),
        ("probe", {"namespace": "my boat"}, "namespace: 'my boat'"),
        ("probe", {"log_level": "loud"}, "log_level: "),
        ("traffic_sim", {"probes": "0"}, "probes: "),
    ):
        with pytest.raises(ConfigError, match=f"launch: {problem}"):
            processes(launch, **given)


def test_a_parameter_file_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceError):
        processes("probe", params_file="mine.yaml")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text("/**: {ros__parameters: {seed: 1}}\n")
    (found,) = processes("probe", params_file="mine.yaml").values()
    assert found.params_file == str(file)
    file.write_text("/**:\n  ros__parameters:\n    map: {obstacles: [[0, 0], [5, 5]]}\n")
    for name in LAUNCHES:
        with pytest.raises(ConfigError, match=r"line 3: map\.obstacles: "):
            processes(name, params_file="mine.yaml", **NEEDED.get(name, {}))


def test_a_file_for_a_node_that_is_elsewhere_is_refused(tmp_path: Path) -> None:
    """ROS would pass over the section without a word."""
    path = tmp_path / "mine.yaml"
    text = "{}:\n  ros__parameters:\n    map: {{file: town}}\n"
    for name in ("active_sensing", "/active_sensing", "/other/active_sensing"):
        path.write_text(text.format(name))
        with pytest.raises(ConfigError, match=r"mine.yaml: line 3: .*write /boat/active_sensing"):
            processes("probe", params_file=str(path), namespace="boat")
        assert processes("probe", params_file=str(path))
    for fitting in ("/boat/active_sensing", "/**/active_sensing", "/**"):
        path.write_text(text.format(fitting))
        assert processes("probe", params_file=str(path), namespace="boat")


# -- the runner -----------------------------------------------------------------------------------


def options(command: tuple[str, ...], flag: str) -> dict[str, str]:
    values = [command[i + 1] for i, word in enumerate(command) if word == flag]
    return dict(value.split(":=", 1) for value in values)


def test_the_runner_starts_nodes_with_the_interpreter_that_runs() -> None:
    found = processes("traffic_sim", policy="random", budget="7", seed="3", namespace="/lake/boat")
    text = processes("probe", map="12")["active_sensing"]
    assert options(command_of(text), "-p")["map.file"] == '"12"', "text stays text"
    command = command_of(found["active_sensing"])
    module = "gp_active_sensing.ros.active_sensing_node"
    assert command[:4] == (sys.executable, "-m", module, "--ros-args")
    file = str(find_resource("config", "traffic_sim.yaml"))
    assert command[command.index("--params-file") + 1] == file
    assert options(command, "-r") == {"__node": "active_sensing", "__ns": "/lake/boat"}
    values = {name: json.loads(text) for name, text in options(command, "-p").items()}
    assert values == {
        "scenario": "town",
        "policy.name": "random",
        "budget.readings": 7,
        "seed": 3,
        "use_sim_time": True,
    }


def test_a_viewer_is_started_with_our_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="rviz2"):
        make_group("probe", {"rviz": "true"})
    program = tmp_path / "rviz2"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    command = command_of(processes("probe", rviz="true")["rviz2"])
    view = str(find_resource("rviz", "gp_active_sensing.rviz"))
    assert command[:4] == (str(program), "-d", view, "--ros-args")


def test_the_words_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_arguments(["a:=b:=c", "d:="]) == {"a": "b:=c", "d": ""}
    for text in ("policy", ":=bal", "policy=bal"):
        with pytest.raises(ConfigError):
            parse_arguments([text])
    with pytest.raises(UnknownNameError, match="Did you mean 'probe'"):
        find_launch("prob")
    assert main([]) == REFUSED
    assert main(["prob"]) == REFUSED
    assert main(["probe", "policy=bal"]) == REFUSED
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, kind in LAUNCHES.items():
        assert f"{name} " in shown
        assert main([name, "--show-args"]) == 0
        text = capsys.readouterr().out
        for argument in declarations(kind):
            assert f"  {argument['name']}: {argument['description']} (" in text
        assert ".py" not in text, "of what ships, only what can be given"


def test_the_environment_of_the_nodes() -> None:
    """Both traces of the wheels or neither; our profile unless the user has one."""
    both = {GUARD: "1", "LD_LIBRARY_PATH": "/somewhere"}
    assert both.items() <= child_environment(both).items()
    assert GUARD not in child_environment({GUARD: "1"})
    ours = child_environment({})
    assert Path(ours["FASTRTPS_DEFAULT_PROFILES_FILE"]).name == "fastdds.xml"
    assert ours["OMP_NUM_THREADS"] == "1"
    theirs = {"FASTRTPS_DEFAULT_PROFILES_FILE": "/mine.xml", "OMP_NUM_THREADS": "4"}
    assert theirs.items() <= child_environment(theirs).items()
    other = child_environment({"FASTDDS_DEFAULT_PROFILES_FILE": "/mine.xml"})
    assert "FASTRTPS_DEFAULT_PROFILES_FILE" not in other


# -- the launch files, without `launch` (with it: test_real_launch) --------------------------------


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import `launch_actions` over classes that keep their keywords."""
    kinds = ("Node", "LogInfo", "Shutdown", "DeclareLaunchArgument", "OpaqueFunction")
    members = {kind: type(kind, (SimpleNamespace,), {}) for kind in kinds}
    members |= {"LaunchContext": SimpleNamespace, "LaunchDescription": list}
    members["ParameterValue"] = lambda value, value_type: (value, value_type)
    names = ("launch", "launch.actions", "launch_ros", "launch_ros.actions")
    for name in (*names, "launch_ros.parameter_descriptions"):
        monkeypatch.setitem(sys.modules, name, module := ModuleType(name))
        vars(module).update(members)
    name = "gp_active_sensing.ros.launch_actions"
    monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module(name)
    del sys.modules[name]


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_launch_file_starts_what_the_runner_starts(
    name: str, actions: Any, tmp_path: Path
) -> None:
    file = find_resource("launch", f"{name}.launch.py")
    *declared, opaque = runpy.run_path(str(file))["generate_launch_description"]()
    assert [vars(found) for found in declared] == list(declarations(LAUNCHES[name]))
    for found in declared:  # `launch` refuses a default outside of the choices
        assert getattr(found, "default_value", "") in getattr(found, "choices", [""]) or not (
            hasattr(found, "choices")
        )
    given = with_everything(name, tmp_path)
    context = SimpleNamespace(launch_configurations=given)
    started = opaque.function(context, *opaque.args)
    expected = processes(name, **given)
    assert [action.name for action in started] == list(expected)
    for action in started:
        process = expected[action.name]
        assert action.on_exit.process == process
        assert action.respawn is process.respawn
        *file_given, typed = action.parameters
        assert file_given == [process.params_file] * bool(process.params_file)
        assert {k: v[0] if isinstance(v, tuple) else v for k, v in typed.items()} == dict(
            process.parameters
        )
        assert all((v == (v[0], str)) for v in typed.values() if isinstance(v, tuple))
        assert (action.package, action.executable) == (process.package, process.executable)
        assert action.remappings == list(process.remappings)


def ended(action: Any, code: int, *, asked: bool = False) -> list[Any]:
    """Return what follows when a process ends with an exit code, minus n after signal n."""
    context = SimpleNamespace(is_shutdown=asked)
    return action.on_exit(SimpleNamespace(returncode=code), context) or []


def test_what_follows_the_end_of_a_process(actions: Any, tmp_path: Path) -> None:
    """An exception is what makes ``ros2 launch`` end with 1."""

    def started(**given: str) -> list[Any]:
        return actions.start(SimpleNamespace(launch_configurations=given), LAUNCHES["probe"])

    (node,) = started()
    for code, words in ((-9, "signal SIGKILL"), (1, "exit code 1"), (2, "exit code 2")):
        with pytest.raises(RunError, match=f"active_sensing ended with {words}"):
            ended(node, code)
        assert ended(node, 0, asked=True), "it is said once"
    for code in (0, -signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGINT):
        assert ended(node, code, asked=True)
    with pytest.raises(RunError):
        ended(node, -signal.SIGINT)
    ahead, _ = started(plan_ahead="true")
    assert ahead.msg.startswith("plan_ahead: has no effect")
    note, again = started(respawn="true", record="bag", plan_ahead="false")
    assert note.msg.startswith("record: was removed"), "a launch file that includes it may have one"
    assert again.respawn_delay == RESPAWN_SECONDS
    assert not ended(again, -9)
    assert not ended(again, FAILED)
    assert ended(again, 0)
    for code, asked in ((REFUSED, False), (-9, True)):
        with pytest.raises(RunError):
            ended(again, code, asked=asked)
