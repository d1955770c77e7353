"""What the blocks of the pages are compared with, and the files that a page takes for granted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml


def check_arguments(use: str, arguments: list[str]) -> None:
    """Compare arguments of a launch with those that it has."""
    from gp_active_sensing.errors import ConfigError
    from gp_active_sensing.ros.launches import find_launch, read_arguments
    from gp_active_sensing.ros.runner import parse_arguments

    needed = {"bag": "some"} if use == "replay" else {}
    kind = find_launch(use)
    try:
        read_arguments(kind, {**needed, **parse_arguments(arguments)}, strict=True)
    except ConfigError as error:
        pytest.fail(str(error))


def check_parameters(text: str, folder: Path) -> None:
    """Check parameters of `active_sensing`, laid over the shipped file, as the node would."""
    from gp_active_sensing.config import from_mapping
    from gp_active_sensing.mission.config import ActiveSensingConfig
    from gp_active_sensing.planning import build_policy
    from gp_active_sensing.ros.parameter_files import check_parameter_file
    from gp_active_sensing.util.resources import find_resource

    file = folder / "parameters_of_the_page.yaml"
    file.write_text(text, encoding="utf-8")
    check_parameter_file(file)
    file.unlink()
    given = yaml.safe_load(text)
    shipped = yaml.safe_load(find_resource("config", "probe.yaml").read_text("utf-8"))
    (name,) = given
    assert name in {"/**", "active_sensing"}, f"{name}: no node of that name"
    base = shipped["/**"]["ros__parameters"]
    assert "file" not in base["map"], "without a map there is no mission"
    own = given[name]["ros__parameters"]
    if "topic" not in own.get("map", {}):
        base["map"]["file"] = "town"  # the reader's map
    if "readings" in own:
        del base["reading"]  # one of the two
    whole = overlaid(base, own)
    config = from_mapping(ActiveSensingConfig, whole)
    build_policy(config.policy)


def overlaid(base: Any, part: Any) -> Any:
    """Return nested data with a part of it replaced; a policy or map of another kind as a whole."""
    if not (isinstance(base, Mapping) and isinstance(part, Mapping)):
        return part
    merged = dict(base)
    for key, value in part.items():
        old = base.get(key)
        inner = isinstance(old, Mapping) and isinstance(value, Mapping)
        if inner and any(
            value.get(word, old.get(word)) != old.get(word) for word in ("kind", "name")
        ):
            old = None
        merged[key] = overlaid(old, value)
    return merged


def _bag(path: Path) -> None:
    """Make a logged drive through the town: poses along some streets and a reading of each."""
    pytest.importorskip("rosbags", reason="the extra [bag] is not installed")
    from gp_active_sensing.topology import MapConfig, build_topology
    from tests.replay.bags import write_bag
    from tests.ros.test_replay_launch import odometry, temperature

    town = build_topology(MapConfig(kind="roads", file="town"))
    messages: list[tuple[str, int, Any]] = []
    stamp, place = 1_700_000_000_000_000_000, 0
    for _ in range(6):
        line = town.geometry(place)
        for part in range(11):
            stamp += 1_000_000_000
            x, y = line[0] + (line[-1] - line[0]) * part / 10
            messages.append(("/pose", stamp, odometry(stamp, float(x), float(y))))
            if part == 6:
                messages.append(("/reading", stamp + 1, temperature(stamp + 1, 30.0)))
        place = int(town.neighbours(place)[0])
    folder = write_bag(path.with_suffix(".folder"), messages)
    next(folder.glob("*.mcap")).rename(path)


def _parameters(path: Path) -> None:
    """Make the copy of probe.yaml that a page tells its reader to make and change."""
    from gp_active_sensing.util.resources import find_resource

    shipped = find_resource("config", "probe.yaml").read_text("utf-8")
    assert "# datum: [" in shipped
    path.write_text(shipped.replace("# datum: [", "datum: ["), encoding="utf-8")


GIVEN = {"drive.mcap": _bag, "my_boat.yaml": _parameters}
