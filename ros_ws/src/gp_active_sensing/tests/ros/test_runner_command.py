"""The runner's command: arguments, environment, what it starts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gp_active_sensing.errors import (
    ConfigError,
    MissingDependencyError,
    ResourceError,
    UnknownNameError,
)
from gp_active_sensing.ros.launching import declarations
from gp_active_sensing.ros.runner import (
    child_environment,
    launch_names,
    main,
    make_group,
    parse_arguments,
    read_launch,
)
from gp_active_sensing.util.resources import find_resource
from tests.ros.launched import parameters, processes

GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"


def command_of(launch: str, node: str, **given: str) -> list[str]:
    return list(processes(launch, **given)[node].command())


def options(command: list[str], flag: str) -> dict[str, str]:
    values = [command[i + 1] for i, word in enumerate(command) if word == flag]
    return dict(value.split(":=", 1) for value in values)


def test_traffic_sim_starts_both_nodes_with_the_interpreter_that_runs() -> None:
    command = command_of("traffic_sim", "active_sensing", policy="random", budget="7", seed="3")
    assert command[:4] == [
        sys.executable,
        "-m",
        "gp_active_sensing.ros.active_sensing_node",
        "--ros-args",
    ]
    assert command[command.index("--params-file") + 1] == str(
        find_resource("config", "traffic_sim.yaml")
    )
    assert options(command, "-r") == {"__node": "active_sensing"}
    values = {name: json.loads(text) for name, text in options(command, "-p").items()}
    assert values == {
        "scenario": "town",
        "policy.name": "random",
        "budget.readings": 7,
        "seed": 3,
        "use_sim_time": True,
    }
    other = command_of("traffic_sim", "simulator", speed_factor="4")
    assert other[2] == "gp_active_sensing.ros.simulator_node"
    assert json.loads(options(other, "-p")["speed_factor"]) == 4.0


def test_text_that_looks_like_a_number_stays_text() -> None:
    command = command_of("probe", "active_sensing", map="12", reading_topic="/car/temp")
    assert options(command, "-p")["map.file"] == '"12"'
    assert options(command, "-p")["reading.topic"] == '"/car/temp"'
    assert "waypoint.topic" not in options(command, "-p"), "it has its own name"


def test_replay_waits_for_the_subscriber_of_its_topics() -> None:
    command = command_of("replay", "bag_player", bag="drive", pose_topic="/odom")
    values = {name: json.loads(text) for name, text in options(command, "-p").items()}
    assert values == {
        "bag": "drive",
        "salvage": False,
        "topics": ["reading", "/odom"],
        "wait_for": ["reading", "/odom"],
        "journal": "active_sensing/journal",
        "finish": "active_sensing/finish",
    }


def test_all_wrong_arguments_are_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        processes("traffic_sim", polcy="bal", policy="ball", budget="many", rviz="perhaps")
    text = str(caught.value)
    assert "launch: 4 problems" in text
    assert "polcy: unknown key. Did you mean 'policy'?" in text
    assert "policy: expected one of" in text
    assert "Did you mean 'bal'?" in text
    assert "budget: expected a whole number, got str 'many'" in text
    assert "rviz: expected true or false, got str 'perhaps'" in text


def test_a_required_argument_and_an_unknown_launch_are_explained() -> None:
    with pytest.raises(ConfigError, match="bag: is required"):
        processes("replay")
    with pytest.raises(UnknownNameError, match=r"'prob'\. Did you mean 'probe'\?"):
        read_launch("prob")


def test_a_parameter_file_that_is_not_there() -> None:
    with pytest.raises(ResourceError, match=r"no file 'mine\.yaml'"):
        processes("probe", params_file="mine.yaml")


def test_a_parameter_file_of_the_user_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text("/**: {ros__parameters: {seed: 1}}\n")
    monkeypatch.chdir(tmp_path)
    command = command_of("probe", "active_sensing", params_file="mine.yaml")
    assert command[command.index("--params-file") + 1] == str(tmp_path / "mine.yaml")


def test_a_viewer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingDependencyError, match="rviz2 is not on the PATH"):
        make_group("probe", {"rviz": "true"})


def test_a_viewer_is_started_with_our_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rviz2"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    command = command_of("probe", "rviz2", rviz="true")
    view = str(find_resource("rviz", "gp_active_sensing.rviz"))
    assert command[:4] == [str(program), "-d", view, "--ros-args"]


@pytest.mark.parametrize("text", ["policy", ":=bal", "policy=bal"])
def test_words_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected name:=value"):
        parse_arguments([text])


def test_a_value_may_contain_the_separator() -> None:
    assert parse_arguments(["a:=b:=c", "d:="]) == {"a": "b:=c", "d": ""}


def test_a_child_gets_both_traces_of_the_wheels_or_neither() -> None:
    both = {GUARD: "1", "LD_LIBRARY_PATH": "/somewhere"}
    assert both.items() <= child_environment(both).items()
    assert GUARD not in child_environment({GUARD: "1"})
    assert child_environment({"LD_LIBRARY_PATH": "/x"})["LD_LIBRARY_PATH"] == "/x"


def test_the_discovery_profile_is_set_unless_the_user_has_one() -> None:
    ours = child_environment({})
    assert Path(ours["FASTRTPS_DEFAULT_PROFILES_FILE"]).name == "fastdds.xml"
    assert ours["OMP_NUM_THREADS"] == "1"
    theirs = {"FASTRTPS_DEFAULT_PROFILES_FILE": "/mine.xml", "OMP_NUM_THREADS": "4"}
    assert theirs.items() <= child_environment(theirs).items()
    other = child_environment({"FASTDDS_DEFAULT_PROFILES_FILE": "/mine.xml"})
    assert "FASTRTPS_DEFAULT_PROFILES_FILE" not in other


@pytest.mark.parametrize("name", launch_names())
def test_show_args_lists_every_argument(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--show-args"]) == 0
    text = capsys.readouterr().out
    for argument in declarations(read_launch(name).arguments):
        assert f"  {argument['name']}: {argument['description']} (" in text
    assert ".py" not in text, "of what ships, only what can be given"


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert "traffic_sim" in capsys.readouterr().out
    assert main(["prob"]) == 2
    assert main(["probe", "policy=bal"]) == 2
    captured = capsys.readouterr()
    assert "Did you mean 'probe'?" in captured.err
    assert "policy=bal: expected name:=value" in captured.err


def test_an_empty_argument_leaves_the_matter_to_the_file() -> None:
    given = processes("traffic_sim")
    assert parameters(given["simulator"])["scenario"] == "town"
    empty = processes("traffic_sim", scenario="", exit_at_end="", map_topic="")["active_sensing"]
    assert parameters(empty) == {"use_sim_time": True}
    assert empty.remappings == []
