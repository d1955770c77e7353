"""Parameter files are looked at before rcl reads them; it agrees on what it cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest
import rclpy
from rclpy.context import Context

from gp_active_sensing.errors import ConfigError
from gp_active_sensing.ros.node_base import RCLError
from gp_active_sensing.ros.parameter_files import check_parameter_file, given_files, keys_in_files
from tests.cases import case

HEAD = "/**:\n  ros__parameters:\n"
ORDER = "expected the name of a node, such as /**, below it ros__parameters"

WRONG = {
    "obstacles: [[0, 0], [5, 5]]": 'obstacles: "[[0, 0], [5, 5]]"',
    "map:\n      outline:\n        - [0.5, 0]\n        - [5, 5]": 'outline: "[[0.5, 0], [5, 5]]"',
    "boxes: [[[0, 0], [1, 1]]]": 'boxes: "[[[0, 0], [1, 1]]]"',
    """names: [["a", 'b c'], [d]]""": """names: '[["a", ''b c''], [d]]'""",
    "datum: [1, 103.82]": "datum: [1.0, 103.82]",
    "datum: [1.5, here]": "must be of one type, got numbers, text",
    "features: [x, y]": "must be of one type, got true/false, text; quote",
    "x:": 'x: has no value; leave the key out, or write x: ""',
    "x: &a 3\n    z: *a": "*a: ROS knows no aliases",
    "x: &a [*a]": "*a: ROS knows no aliases",
}
FINE = (
    'obstacles: "[[0, 0], [5, 5]]"',
    "scales: [1, 2]",
    "scales: [1.0, .inf, .nan]",
    'features: ["x", "y"]',
    "flags: [yes, n, on]",
    'words: ["1", two, null]',
    "x: null",
    "x: &a 3",
    'x: ""',
    "a.b: {c: 3}",
)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def read_by_rcl(path: Path) -> None:
    context = Context()
    rclpy.init(args=["--ros-args", "--params-file", str(path)], context=context)
    rclpy.shutdown(context=context)


def test_what_rcl_cannot_read_is_said_with_line_key_and_remedy(tmp_path: Path) -> None:
    for text in WRONG:
        with case(text):
            path = write(tmp_path / "mine.yaml", f"{HEAD}    {text}\n")
            with pytest.raises(ConfigError) as error:
                check_parameter_file(path)
            (problem,) = error.value.problems
            assert problem.startswith("line ")
            assert WRONG[text] in problem
            assert str(path) in str(error.value)
            with pytest.raises(RCLError, match="parse params file"):
                read_by_rcl(path)


def test_a_list_of_mappings_which_rcl_garbles_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.yaml", f"{HEAD}    things: [{{a: 1}}, {{a: 2}}]\n")
    with pytest.raises(ConfigError, match=r'line 3: things: .* things: "\[\{a: 1\}, \{a: 2\}\]"'):
        check_parameter_file(path)


def test_what_rcl_reads_is_let_through(tmp_path: Path) -> None:
    for text in FINE:
        with case(text):
            path = write(tmp_path / "mine.yaml", f"{HEAD}    {text}\n")
            check_parameter_file(path)
            read_by_rcl(path)


def test_a_file_of_another_form(tmp_path: Path) -> None:
    for text, said in [
        ("map: {kind: grid}\n", f"line 1: kind: a value before ros__parameters: {ORDER}"),
        ("/**:\n  x: 1\n", f"line 2: x: a value before ros__parameters: {ORDER}"),
        ("/**:\n", f"line 1: /**: a value before ros__parameters: {ORDER}"),
        (HEAD + "    # all of it\n", "expected parameters below it, found none"),
        ("- a\n", f"line 1: {ORDER}"),
        ("a: [\n", "is not valid YAML"),
    ]:
        with case(text, said):
            path = write(tmp_path / "mine.yaml", text)
            with pytest.raises(ConfigError) as error:
                check_parameter_file(path)
            assert said in str(error.value)
            with pytest.raises(RCLError):
                read_by_rcl(path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        check_parameter_file(tmp_path)
    (tmp_path / "latin").write_bytes(b"/**: {ros__parameters: {a: \xe4}}\n")
    with pytest.raises(ConfigError, match="no text in UTF-8"):
        check_parameter_file(tmp_path / "latin")


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    for text in ["", "# nothing yet\n", "---\n"]:
        with case(text):
            path = write(tmp_path / "mine.yaml", text)
            words = ["--ros-args", "--params-file", str(path)]
            assert keys_in_files(words, "active_sensing") == {}


def test_under_which_name_a_key_stands(tmp_path: Path) -> None:
    first = write(tmp_path / "one.yaml", HEAD + "    map: {kind: grid}\n    seed: 1\n")
    second = write(
        tmp_path / "two.yaml",
        "boat:\n  active_sensing:\n    ros__parameters: {seed: 2}\n"
        "/boat/simulator: {ros__parameters: {speed_factor: 2.0}}\n"
        "/boat/*: {ros__parameters: {autostart: true}}\n",
    )
    words = ["node", "--ros-args", "--params-file", str(first), "--params-file", str(second)]
    assert given_files(words) == [first, second]
    expected = {"map.kind": False, "seed": True, "autostart": False}
    assert keys_in_files(words, "active_sensing") == expected
    assert keys_in_files(words, "simulator")["speed_factor"]
    broken = ["--ros-args", "--params-file", str(tmp_path / "none.yaml")]
    assert keys_in_files(broken, "active_sensing") == {}
