"""What a YAML text may not be: large, deep, within itself, or short and yet endless."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.config import from_mapping
from gp_active_sensing.errors import MOST_SHOWN, ConfigError, RunError, brief_repr
from gp_active_sensing.mission.run_dirs import AUTO, choose_run, runs_folder
from gp_active_sensing.planning.bal.policy import Bal
from gp_active_sensing.records.run_directory import RunDirectory
from gp_active_sensing.replay.options import parameters_of
from gp_active_sensing.sim import load_scenario
from gp_active_sensing.util import yaml_files
from gp_active_sensing.util.yaml_files import (
    MOST_ALIASES,
    MOST_BYTES,
    MOST_DEPTH,
    MOST_NODES,
    MOST_NUMBER,
    apply_overrides,
    load_yaml,
    parse_yaml,
)


def bomb(levels: int = 9, each: int = 9) -> str:
    """A list of lists of lists …, 0.4 kB that stand for each ** levels entries."""
    lines = ["a0: &a0 [" + ", ".join("x" * each) + "]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * each)}]")
    return "\n".join(lines)


HOSTILE = {
    "bomb": (bomb(), f"at most {MOST_NODES} keys and values, those that aliases stand for"),
    "merged": (
        "a: &a {x: 1, y: 2}\n" + "b: {<<: [" + ", ".join(["*a"] * (MOST_ALIASES + 1)) + "]}",
        f"at most {MOST_ALIASES} aliases",
    ),
    "within itself": ("a: &a [1, *a]", "a stands within what it stands for"),
    "within itself below": ("a: &a\n  b: {c: *a}", "a stands within what it stands for"),
    "merged into itself": ("a: &a\n  <<: *a", "a stands within what it stands for"),
    "deep": ("a: " + "[" * 500 + "]" * 500, f"at most {MOST_DEPTH} mappings and lists"),
    "deep, by lines": ("".join(" " * i + "a:\n" for i in range(200)), f"at most {MOST_DEPTH} map"),
    "deep by aliases": (
        "a0: &a0 [1]\n" + "\n".join(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 200)),
        f"at most {MOST_DEPTH} mappings and lists",
    ),
    "long number": ("a: " + "9" * 5000, f"at most {MOST_NUMBER} characters of a number"),
    "number by sixties": ("a: 1" + ":59" * 5000, f"at most {MOST_NUMBER} characters of a number"),
    "half a character": ('a: "\\ud800"', "lone surrogate"),
    "no date": ("a: 2024-13-45", "not valid YAML"),
}


def test_what_is_refused_by_all_that_read_yaml(tmp_path: Path) -> None:
    """One reader: a scenario, parameters, a run's own configuration."""
    for name in HOSTILE:
        text, said = HOSTILE[name]
        path = tmp_path / "config.yaml"
        path.write_text(text)
        readers: dict[Callable[[Any], object], type[Exception]] = {
            load_yaml: ConfigError,
            load_scenario: ConfigError,
            parameters_of: ConfigError,
            lambda file: RunDirectory.open(file.parent): RunError,
        }
        for reader, kind in readers.items():
            with pytest.raises(kind) as caught:
                reader(path)
            assert said in str(caught.value)
            assert str(path) in str(caught.value)
            assert len(str(caught.value)) < 1000


def test_what_is_refused_by_set_and_by_parameters() -> None:
    inner = "".join(f", &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))
    texts = {name: HOSTILE[name][0].removeprefix("a: ") for name in ("within itself", "deep")}
    for name, text in (texts | {"bomb": f"[&a0 [1]{inner}]"}).items():
        with pytest.raises(ConfigError) as caught:
            apply_overrides({}, [f"policy.name={text}"])
        assert HOSTILE[name][1] in str(caught.value)
        assert len(str(caught.value)) < 500
        # A list of lists stands in quotes among parameters: there it is a text that is no list.
        with pytest.raises(ConfigError) as caught:
            from_mapping(Bal, {"horizon": text})
        assert len(str(caught.value)) < 500


def test_as_much_as_is_allowed() -> None:
    assert len(parse_yaml(f"[{', '.join('1' * 5000)}]")) == 5000
    assert parse_yaml("[" * (MOST_DEPTH - 1) + "1" + "]" * (MOST_DEPTH - 1))
    with pytest.raises(ConfigError, match="in each other"):
        parse_yaml("[" * MOST_DEPTH + "1" + "]" * MOST_DEPTH)
    assert parse_yaml("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}") == {
        "a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}
    }  # fmt: skip


def test_nodes_are_counted_with_those_that_aliases_stand_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "a: &a [1, 2, 3]\nb: [*a, *a]"  # a mapping, two keys, and 4 + 1 + 4 + 4
    monkeypatch.setattr(yaml_files, "MOST_NODES", 16)
    assert parse_yaml(text)
    monkeypatch.setattr(yaml_files, "MOST_NODES", 15)
    with pytest.raises(ConfigError, match=r"line 2: expected at most 15 keys and values, those"):
        parse_yaml(text)
    with pytest.raises(ConfigError, match=r"line 2: expected at most 15 keys and values$"):
        parse_yaml("a: 1\nb: [1" + ", 1" * 20 + "]")


def test_a_node_starts_beside_a_configuration_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``run_dir: auto`` a new mission is begun; it did not start, nor did it ever again."""
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    damaged = runs_folder() / "20260101T000000"
    damaged.mkdir(parents=True)
    (damaged / "config.yaml").write_text(HOSTILE["bomb"][0])
    now = datetime(2026, 1, 2)  # noqa: DTZ001
    run, events = choose_run(AUTO, {"map": {}}, now, resume=True)
    assert run is not None
    assert run.path != damaged
    assert events == []
    run.close()


def test_an_error_shows_the_beginning_of_a_value_only() -> None:
    wide: list[Any] = [1]
    for _ in range(60):  # what it stands for would not fit into any memory
        wide = [wide] * 9
    assert len(brief_repr(wide)) <= 60
    itself: list[Any] = []
    itself.append(itself)
    assert "[...]" in brief_repr(itself)
    assert brief_repr("a" * 10**6) == "'" + 56 * "a" + "..."
    with pytest.raises(ConfigError) as caught:
        from_mapping(Bal, {"horizon": wide, **{f"{'k' * 1000}{i}": 1 for i in range(10_000)}})
    assert len(str(caught.value)) < 100_000
    assert f"{10_000 - MOST_SHOWN} more unknown keys" in caught.value.problems[MOST_SHOWN]
    assert f"… and {len(caught.value.problems) - MOST_SHOWN} more" in str(caught.value)


def test_too_large_or_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with path.open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)
    with pytest.raises(ConfigError, match=r"a\.yaml: is too large: expected at most 2 MiB"):
        load_yaml(path)
    path.unlink()
    os.mkfifo(path)  # reading it would wait without end
    with pytest.raises(ConfigError, match=r"a\.yaml: cannot be read: expected a file, got a pipe"):
        load_yaml(path)
    with pytest.raises(ConfigError, match="Is a directory"):
        load_yaml(tmp_path)
