"""Dockerfile and development container: all that they name exists. No image is built here."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import xml.etree.ElementTree as ET
from importlib import metadata
from pathlib import Path

import pytest

from gp_active_sensing.ros.launches import LAUNCHES
from tests.page_checks import check_arguments
from tests.pages import PACKAGE, REPOSITORY

DOCKERFILE = REPOSITORY / "Dockerfile"
if not DOCKERFILE.exists():
    pytest.skip("the package lies outside its repository", allow_module_level=True)


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line)]


def named(kind: str) -> list[str]:
    return [rest for word, rest in instructions() if word == kind]


def test_every_file_that_is_copied_exists_and_is_not_ignored() -> None:
    ignored = (REPOSITORY / ".dockerignore").read_text("utf-8").split()
    assert named("COPY")
    for line in named("COPY"):
        *sources, _target = line.split()
        for source in sources:
            assert (REPOSITORY / source).exists(), source
            parts = [
                str(Path(*Path(source).parts[: i + 1])) for i in range(len(Path(source).parts))
            ]
            for pattern in ignored:
                assert not any(fnmatch.fnmatch(part, pattern) for part in parts), (source, pattern)


def test_what_rosdep_leaves_out_pip_installs() -> None:
    (rosdep,) = (line for line in named("RUN") if "rosdep install" in line)
    (skipped,) = re.findall(r"--skip-keys (\S+)", rosdep)
    keys = [e.text for e in ET.parse(PACKAGE / "package.xml").getroot().iter("exec_depend")]
    assert skipped in keys
    (pip,) = (line for line in named("RUN") if " pip install" in line)
    required = [r.split(";") for r in metadata.requires("gp_active_sensing") or [] if ";" in r]
    of_bags = [name.strip() for name, extra in required if 'extra == "bag"' in extra]
    of_streets = [name.strip() for name, _ in required if name.startswith("osmium")]
    assert of_bags
    assert of_streets
    for requirement in of_bags + of_streets:
        assert requirement in shlex.split(pip)
    (limits,) = re.findall(r"--constraint (\S+)", pip)
    assert any(line.split()[1] == limits for line in named("COPY"))


def test_it_starts_a_launch_file_that_there_is() -> None:
    (line,) = named("CMD")
    command = json.loads(line)
    assert command[:3] == ["ros2", "launch", "gp_active_sensing"]
    use = command[3].removesuffix(".launch.py")
    assert use in LAUNCHES
    check_arguments(use, command[4:])
