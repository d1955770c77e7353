"""The pages say what is true: blocks run, commands and options exist, links lead somewhere."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from gp_active_sensing import cli
from gp_active_sensing.ros.launches import launch_spec
from gp_active_sensing.topology import MapConfig, build_topology

PACKAGE = Path(__file__).resolve().parents[2]
REPOSITORY = PACKAGE.parents[2]
if not (REPOSITORY / "Makefile").exists():
    pytest.skip("the package lies outside its repository", allow_module_level=True)

PAGES = sorted(
    page
    for pattern in ("*.md", "docs/*.md", "ros_ws/src/gp_active_sensing/**/*.md")
    for page in REPOSITORY.glob(pattern)
    if not {"build", "install", ".venv"} & set(page.relative_to(REPOSITORY).parts)
)


def blocks(language: str) -> list[tuple[Path, str]]:
    found = []
    for page in PAGES:
        for body in re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            found.append((page, body))
    return found


def commands() -> list[tuple[Path, str]]:
    lines = [(p, line) for p, body in blocks("sh") for line in body.splitlines() if line.strip()]
    return [(p, part.strip()) for p, line in lines for part in line.split("&&")]


def identify(value: object) -> str:
    return value.name if isinstance(value, Path) else str(value)[:40]


@pytest.mark.parametrize(("page", "code"), blocks("python"), ids=identify)
def test_python_runs(page: Path, code: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(("page", "text"), blocks("json"), ids=identify)
def test_maps_load(page: Path, text: str, tmp_path) -> None:
    path = tmp_path / "example.geojson"
    path.write_text(text, encoding="utf-8")
    roads = build_topology(MapConfig(kind="roads", file=str(path)))
    assert roads.n >= len(json.loads(text)["features"])


@pytest.mark.parametrize(("page", "command"), commands(), ids=identify)
def test_commands_exist(page: Path, command: str) -> None:
    words = shlex.split(command)
    match words:
        case ["make", target, *_]:
            assert re.search(rf"^{target}:", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
        case ["gp-active-sensing", name, *rest]:
            shown = CliRunner().invoke(cli._cli, [name, "--help"])
            assert shown.exit_code == 0, shown.output
            for word in rest:
                if word.startswith("-"):
                    assert word in shown.output, f"{word} is no option of {name}"
        case ["ros2", "launch", "gp_active_sensing", file, *arguments]:
            assert (PACKAGE / "launch" / file).exists()
            check_arguments(file.removesuffix(".launch.py"), arguments)
        case ["python", "-m", "gp_active_sensing.ros.runner", use, *arguments]:
            check_arguments(use, arguments)
        case ["bash", ".ci/run"]:
            assert (REPOSITORY / ".ci" / "run").exists()
        case ["git" | "cd" | "colcon" | "." | "pip", *_]:
            pass
        case _:
            pytest.fail(f"{page.name}: nobody checks {command!r}")


def check_arguments(use: str, arguments: list[str]) -> None:
    known = {argument.name: argument for argument in launch_spec(use).arguments}
    for word in arguments:
        name, _, value = word.partition(":=")
        assert name in known, f"{name} is no argument of {use}: {sorted(known)}"
        if known[name].choices:
            assert value in known[name].choices


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_promised_files_exist() -> None:
    table = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 15
    for name in names:
        assert (PACKAGE / "gp_active_sensing" / name).exists(), name


def test_cited_works_are_listed() -> None:
    listed = set(re.findall(r"@\w+\{(\w+),", (REPOSITORY / "docs" / "refs.bib").read_text("utf-8")))
    sources = [*PAGES, *(PACKAGE / "gp_active_sensing").rglob("*.py")]
    for source in sources:
        for group in re.findall(r"\[([A-Z][a-z]+\d{4}[^\]]*)\]", source.read_text("utf-8")):
            for key in re.findall(r"[A-Z][a-z]+\d{4}", group):
                assert key in listed, f"{source.name} cites {key}"
