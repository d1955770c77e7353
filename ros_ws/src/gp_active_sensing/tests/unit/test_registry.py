"""Names to factories, and plug-ins of other distributions in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

from gp_active_sensing.errors import ActiveSensingError, ConfigError, UnknownNameError
from gp_active_sensing.registry import Registry
from tests.waiting import LIMIT

POLICY = """
from dataclasses import dataclass
from gp_active_sensing.config import param
from gp_active_sensing.planning.greedy import RandomChoice

@dataclass(frozen=True)
class Lucky(RandomChoice):
    '''At random, by another name.'''
    luck: float = param(1.0, help="how much of it", low=0.0)

a_number = 3
"""
KERNEL = """
from gp_active_sensing.kernels.base import Stationary

class Cosine(Stationary):
    def of_distance(self, r):
        import numpy as np
        return np.cos(r)
"""
LOADER = """
from gp_active_sensing.topology import RoadMap, Segment

def load(path):
    x = float(path.read_text())
    there = Segment("s", "a", "b", ((0.0, 0.0), (x, 0.0)), x)
    return RoadMap("one", "map", (there, there.reversed()))

def nothing(path):
    return None
"""
ENTRY_POINTS = """
[gp_active_sensing.policies]
lucky = kit.policy:Lucky
absent = kit.absent:Policy
number = kit.policy:a_number
bal = kit.policy:Lucky

[gp_active_sensing.kernels]
cosine = kit.kernel:Cosine
no_kernel = kit.policy:Lucky

[gp_active_sensing.map_loaders]
.one = kit.loader:load
.none = kit.loader:nothing
"""


def distribution(folder: Path, name: str, entry_points: str, version: str = "1.2") -> None:
    """Put the metadata of an installed distribution into a folder of the path."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit")
    (folder / "kit").mkdir()
    for name, text in (("policy", POLICY), ("kernel", KERNEL), ("loader", LOADER)):
        (folder / "kit" / f"{name}.py").write_text(text)
    distribution(folder, "kit", ENTRY_POINTS)
    (folder / "short.one").write_text("100")
    (folder / "short.none").write_text("100")
    return folder


def python(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that has folders on its path, before those of this one."""
    here = filter(None, [os.environ.get("PYTHONPATH")])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *here])}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def command(kit: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.argv[1:] = {list(words)!r}; from gp_active_sensing.cli import main"
    return python(f"{code}; main()", kit)


def scenario(folder: Path, **changes: str) -> str:
    parts = {
        "map": "{kind: line, count: 9, moves: free}",
        "field": "{kind: gp, length_scale: 2.0}",
        "belief": "{length_scales: [2.0]}",
        "policy": "{name: random}",
        "budget": "{readings: 2}",
    } | changes
    path = folder / "scenario.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in parts.items()))
    return str(path)


def test_a_name_is_taken_once() -> None:
    registry: Registry[list[int]] = Registry("thing")
    registry.add("one", list)
    assert registry.factory("one") is list
    assert ("one" in registry, "two" in registry, 3 in registry) == (True, False, False)
    assert list(registry) == ["one"]
    with pytest.raises(ActiveSensingError, match="thing 'one' is already registered"):
        registry.add("one", list)
    with pytest.raises(UnknownNameError, match=r"unknown thing 'on'\. Did you mean 'one'\?"):
        registry.factory("on")
    with pytest.raises(ConfigError, match=r"unknown thing \['one'\]"):
        registry.factory(["one"])  # type: ignore[arg-type]


def test_a_built_in_name_is_found_without_a_look_at_what_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(**_: object) -> None:
        pytest.fail("nothing needs to be looked up")

    registry: Registry[list[int]] = Registry("thing", group="somebody.things")
    registry.add("one", list)
    monkeypatch.setattr(metadata, "entry_points", refuse)
    assert registry.factory("one") is list
    assert "one" in registry


def test_policies_are_listed_with_their_origin_and_broken_ones_are_said(kit: Path) -> None:
    done = command(kit, "policies")
    assert done.returncode == 0, done.stderr
    listed = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "At random, by another name. [distribution kit 1.2]" in listed["lucky"]
    assert "distribution kit" not in listed["bal"], "the built-in one stays"
    assert "absent" not in done.stdout
    for said in (
        "policy 'bal' of distribution kit 1.2 is not used: the name is built in",
        "policy 'absent' of distribution kit 1.2 (kit.absent:Policy) cannot be used: ",
        "ModuleNotFoundError: No module named 'kit.absent'; fix it or uninstall it",
        "policy 'number' of distribution kit 1.2 (kit.policy:a_number) cannot be used: ",
        "expected something to call, got 3",
    ):
        assert said in done.stderr


def test_a_plug_in_runs_by_its_name_and_key(kit: Path, tmp_path: Path) -> None:
    words = ("run", scenario(tmp_path), "--policy", "lucky", "--set", "policy.luck=2", "--json")
    done = command(kit, *words, "--no-report", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert '"policy": "lucky"' in done.stdout
    done = command(kit, *words, "--set", "policy.luck=-2", "--out", str(tmp_path / "bad"))
    assert done.returncode == 1
    assert "policy.luck: must be 0 or more, got -2" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("policy", "{name: absent}", "policy 'absent' of distribution kit 1.2"),
        ("belief", "{length_scales: [2.0], kernel: no_kernel}", "with the methods of a Kernel"),
        ("map", "{kind: roads, file: KIT/short.none}", "the reader of .none must return a RoadMap"),
    ],
)
def test_a_broken_plug_in_is_one_line(
    kit: Path, tmp_path: Path, key: str, value: str, message: str
) -> None:
    file = scenario(tmp_path, **{key: value.replace("KIT", str(kit))})
    done = command(kit, "run", file, "--no-report", "--out", str(tmp_path / "run"))
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr


def test_kernel_and_map_format_of_a_plug_in(kit: Path, tmp_path: Path) -> None:
    file = scenario(
        tmp_path,
        map=f"{{kind: roads, file: {kit}/short.one}}",
        field="{kind: gp, kernel: cosine, length_scale: 50.0}",
        belief="{length_scales: [50.0], kernel: cosine}",
    )
    done = command(kit, "run", file, "--no-report", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert " 2 of 2 " in done.stdout


def test_doctor_tries_every_plug_in(kit: Path) -> None:
    done = command(kit, "doctor")
    assert done.returncode == 0, "the core works"
    found = [line.split() for line in done.stdout.splitlines()]
    assert ["ok", "policy", "lucky", "distribution", "kit", "1.2"] in found
    assert ["error", "policy", "absent", "distribution", "kit", "1.2"] in found
    assert ["ok", "map", "format", ".one", "distribution", "kit", "1.2"] in found


def test_two_distributions_with_one_name_are_both_refused(kit: Path, tmp_path: Path) -> None:
    distribution(tmp_path, "other", "[gp_active_sensing.policies]\nlucky = kit.policy:Lucky\n", "3")
    code = """
        from gp_active_sensing.errors import PluginError
        from gp_active_sensing.planning import build_policy, policies
        assert "lucky" in policies.names()
        try:
            build_policy({"name": "lucky"})
        except PluginError as error:
            print(error)
        build_policy({"name": "bal"})
    """
    done = python(code, kit, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kit 1.2 and distribution other 3: more than one distribution" in done.stdout


def test_a_damaged_distribution_harms_nobody(kit: Path, tmp_path: Path) -> None:
    distribution(tmp_path, "wreck", "[gp_active_sensing.policies]\n\xff no equals sign\n= x\n")
    (tmp_path / "wreck-1.2.dist-info" / "METADATA").unlink()
    (tmp_path / "wreck-1.2.dist-info" / "entry_points.txt").write_bytes(b"[\xff\xfe\n\x00")
    code = """
        from gp_active_sensing.planning import build_policy, policies
        print(build_policy({"name": "lucky"}), *policies)
    """
    done = python(code, tmp_path, kit)
    assert done.returncode == 0, done.stderr
    assert "Lucky(luck=1.0)" in done.stdout
    assert "bal" in done.stdout
