from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gp_active_sensing.belief import BeliefConfig
from gp_active_sensing.config import from_mapping, param, to_mapping
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.topology import MapConfig
from gp_active_sensing.util.yaml_files import apply_overrides, load_yaml
from tests.cases import for_each


@dataclass(frozen=True)
class Inner:
    size: float = param(1.0, help="how big", unit="m", above=0.0, high=10.0)
    kind: str = param("red", help="colour", choices=("red", "green"))


@dataclass(frozen=True)
class Outer:
    count: int = param(help="how many", low=1)
    inner: Inner = field(default_factory=Inner)
    values: tuple[float, ...] = param((1.0,), help="some", low=0.0, min_items=1)
    pair: tuple[float, float] = param((0.0, 0.0), help="two")
    mixed: float | tuple[float, ...] | None = param(None, help="one, several or none")
    flag: bool = param(False, help="yes or no")
    more: dict[str, Any] = param({}, help="anything")  # noqa: RUF009  what is tested

    def __post_init__(self) -> None:
        if self.count == 13:
            raise ConfigError(["count: 13 is unlucky"])


def problems(data: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        from_mapping(Outer, data, path="top", source="file.yaml")
    assert str(caught.value).startswith("file.yaml: ")
    return list(caught.value.problems)


def test_everything_given_is_kept() -> None:
    data = {
        "count": 2,
        "inner": {"size": 3, "kind": "green"},
        "values": [1, 2],
        "pair": [1, 2],
        "mixed": [1, 2.5],
        "flag": True,
        "more": {"a": [1]},
    }
    built = from_mapping(Outer, data)
    assert built.inner == Inner(3.0, "green")
    assert built.values == (1.0, 2.0)
    assert built.mixed == (1.0, 2.5)
    assert from_mapping(Outer, to_mapping(built)) == built


def test_defaults() -> None:
    built = from_mapping(Outer, {"count": 1})
    assert built == Outer(1)
    assert from_mapping(Outer, {"count": 1, "mixed": 2}).mixed == 2.0
    assert from_mapping(Outer, {"count": 1, "inner": None}).inner == Inner()


def test_all_problems_come_at_once() -> None:
    found = problems(
        {"inner": {"size": 0, "kind": "grene", "sise": 1}, "values": [], "flag": "yes", "x": 1}
    )
    assert len(found) == 7
    text = "\n".join(found)
    for expected in (
        "top.x: unknown key",
        "top.count: is required and missing (how many)",
        "top.inner.sise: unknown key. Did you mean 'size'?",
        "top.inner.size: must be more than 0 [m], got 0",
        "top.inner.kind: expected one of red, green, got 'grene'. Did you mean 'green'?",
        "top.values: expected at least 1 entries, got 0",
        "top.flag: expected true or false, got str 'yes'",
    ):
        assert expected in text


@for_each(
    ("change", "expected"),
    [
        ({"count": 1.5}, "top.count: expected a whole number, got 1.5"),
        ({"count": True}, "top.count: expected a whole number, got bool True"),
        ({"count": 13}, "top.count: 13 is unlucky"),
        ({"values": [1, math.nan]}, "top.values[1]: expected a finite number, got nan"),
        ({"values": [1, 10**400]}, "top.values[1]: expected a finite number, got inf"),
        ({"count": 10**400}, "top.count: expected a finite number, got inf"),
        ({"values": [1, -2]}, "top.values[1]: must be 0 or more, got -2"),
        ({"values": "12"}, "top.values: expected a list, got str '12'"),
        ({"pair": [1]}, "top.pair: expected 2 entries, got 1"),
        ({"inner": [1]}, "top.inner: expected a mapping, got list"),
        ({"inner": {"size": 11}}, "top.inner.size: must be 10 or less [m], got 11"),
        ({"inner": {"kind": 3}}, "top.inner.kind: expected text, got int 3 (quote it in YAML)"),
        ({"mixed": "x"}, "top.mixed: expected a number, got str 'x'"),
    ],
)
def test_wrong_values(change: dict[str, Any], expected: str) -> None:
    assert any(p.startswith(expected) for p in problems({"count": 1, **change}))


def test_a_list_of_lists_may_be_text() -> None:
    """As in a parameter file of ROS, which holds no list within a list."""
    nested: dict[str, Any] = {
        "obstacles": [[[0, 0], [5, 5]], [[6.5, 0], [7, 1], [8, 0]]],
        "outline": [[0, 0], [20, 0], [20, 20]],
    }
    grid = {"kind": "grid", "columns": 4, "rows": 4}
    as_text = {key: str(value) for key, value in nested.items()}
    assert from_mapping(MapConfig, grid | as_text) == from_mapping(MapConfig, grid | nested)
    scales = {"length_scales": "[5, [1, 2]]"}
    assert from_mapping(BeliefConfig, scales).length_scales == (5.0, (1.0, 2.0))


@for_each(
    ("text", "expected"),
    [
        ("[[0, 0], [5, 5]", "obstacles: expected a list of corners, or a file"),
        ("[[[0, 0], [5, wide]]]", "obstacles[0][1][1]: expected a number [m], got str 'wide'"),
    ],
)
def test_text_that_is_no_list_of_lists(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping(MapConfig, {"kind": "grid", "columns": 2, "rows": 2, "obstacles": text})
    assert expected in str(caught.value)


def test_a_default_list_is_not_shared() -> None:
    first, second = Outer(1), Outer(1)
    first.more["a"] = 1
    assert second.more == {}


@for_each(
    ("text", "expected"),
    [
        ("a: [1", "is not valid YAML"),
        ("a: 2024-13-45", "is not valid YAML"),
        ("- 1", "expected a mapping at the top, got list"),
        ("", "expected a mapping at the top, got NoneType"),
        ("a: !!python/object/apply:os.getcwd []", "is not valid YAML"),
    ],
)
def test_broken_yaml(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=expected) as caught:
        load_yaml(path)
    assert caught.value.source == str(path)


def test_overrides_leave_the_original_alone() -> None:
    data = {"a": {"b": 1}, "c": 2}
    changed = apply_overrides(data, ["a.b=[1, 2]", "a.d=null", "e.f.g=yes", "c=text=with="])
    assert changed == {"a": {"b": [1, 2], "d": None}, "c": "text=with=", "e": {"f": {"g": True}}}
    assert data == {"a": {"b": 1}, "c": 2}


def test_wrong_overrides_come_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        apply_overrides({"c": 2}, ["novalue", "=3", "c.d=1", "x=[1"])
    assert len(caught.value.problems) == 4


def test_a_key_given_twice_is_an_error(tmp_path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("seed: 1\nmap: {kind: line, kind: grid}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="key 'kind' is given twice, the second time in line 2"):
        load_yaml(path)
    path.write_text("base: &b {x: 1}\nmine: {<<: *b, x: 2}\n", encoding="utf-8")
    assert load_yaml(path)["mine"] == {"x": 2}


def test_names_that_look_like_numbers_stay_names() -> None:
    @dataclass(frozen=True)
    class Start:
        start: int | str | None = None
        rate: float = 1.0

    assert from_mapping(Start, {"start": "5e2", "rate": "5e2"}) == Start("5e2", 500.0)
    assert from_mapping(Start, {"start": 7}) == Start(7)
