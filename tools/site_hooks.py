"""Hooks of mkdocs that add the first page, the API reference and pages outside `docs/`.

Pages in `docs/` link to files of the packages, such as ``../ros_ws/…``. The site contains these
files below the same paths, so that the links work.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?\[(?:[^\]]|\](?!\())*\]\()([^)\s#]+)?(#[^)\s]*)?(\))")
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)

GALLERY = {
    "routes.png": "Three routes on the same terrain",
    "warehouse.png": "Radio signal in a warehouse",
    "lake.png": "Water temperature of a lake",
    "thermocline.png": "A lake in six layers",
    "hot_spot.png": "Three boats search for the highest value",
    "plume.png": "A plume that drifts",
    "bloom.png": "A bloom in a bay",
    "town_fleet.png": "Three cars share one map",
    "live_desk.png": "The live page",
}
"""Captions of the pictures on the first page, by file name."""

API = {
    "Loop": ["loop.SensingLoop"],
    "Readings, plans and budgets": [
        "types.Reading", "types.Plan", "types.PlanLimit", "types.Budget",
        "planning.request.QuantityBelief",
    ],
    "Maps": [
        "topology.map_config.MapConfig", "topology.config.build_topology", "topology.grids.make_grid",
        "topology.grids.make_occupancy_map", "topology.geometry.OccupancyGrid",
        "topology.loaders.load_roads", "topology.roads.Roads",
    ],
    "Belief": ["belief.config.BeliefConfig", "belief.build.belief_on", "belief.belief.Belief"],
    "Policies": ["planning.build_policy"],
    "Simulation": ["sim.scenario.load_scenario", "sim.driver.run_scenario"],
}  # fmt: skip
"""Public names in the API reference, by chapter, with their modules."""
MEMBERS = {
    "loop.SensingLoop": "[ask, tell, moved, belief_of, amend, reject, advance, wants, costs]"
}
"""Members of classes that the API reference shows. Their other members are for internal use."""
MODULES = (
    "types", "topology.base", "topology.grids", "planning.base", "planning.tour", "kernels.base",
    "sim.scenario", "sim.runner", "export.field_map", "config", "errors",
)  # fmt: skip
"""Modules in the API reference for authors of plug-ins."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the first page, the API reference, and all files to which pages link."""
    files.append(File.generated(config, "index.md", content=_first_page()))
    files.append(File.generated(config, "api.md", content=_api_page()))
    files.append(File.generated(config, "modules.md", content=_modules_page()))
    waiting = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for _, target, _, _ in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
            path = (
                (page.parent / target).resolve()
                if target and "://" not in target
                else page
            )
            path = path / "README.md" if path.is_dir() else path
            inside = path.is_relative_to(ROOT) and path.is_file()
            if path in seen or not inside or path.is_relative_to(ROOT / "docs"):
                continue
            seen.add(path)
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
            if path.suffix == ".md":
                waiting.append(path)
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Replace the links of a page by paths in the site."""
    source = page.file.src_uri
    folder = (
        ""
        if source in ("index.md", "api.md", "modules.md")
        else posixpath.dirname(source)
    )
    in_docs = "/" not in source and source not in (
        "index.md",
        "api.md",
        "modules.md",
        "CONTRIBUTING.md",
    )
    in_docs = in_docs and source != "CHANGELOG.md"
    parts = re.split(r"(^`{3,}.*?^`{3,}\s*$)", markdown, flags=re.MULTILINE | re.DOTALL)
    for number in range(0, len(parts), 2):
        parts[number] = LINK.sub(
            lambda link: _moved(link, folder, in_docs), parts[number]
        )
    for number in range(
        1, len(parts), 2
    ):  # remove the words after the language, which only tests need
        parts[number] = re.sub(r"\A(`{3,}\w+) .*", r"\1", parts[number])
    return "".join(parts)


def _moved(link: re.Match[str], folder: str, in_docs: bool) -> str:
    before, target, anchor, after = link[1], link[2] or "", link[3] or "", link[4]
    if not target or "://" in target:
        return link[0]
    # Compute the path in the repository, and from it the path in the site, whose root is docs/.
    path = posixpath.normpath(posixpath.join("docs" if in_docs else folder, target))
    if (ROOT / path).is_dir():
        path = posixpath.join(path, "README.md")
    if not (ROOT / path).is_file():
        return link[0]  # a broken link; the build reports it
    if before == f"[{posixpath.basename(path)}](" and path.endswith(".md"):
        before = f"[{_title(ROOT / path)}]("
    path = "index.md" if path == "README.md" else path.removeprefix("docs/")
    return f"{before}{posixpath.relpath(path, folder or '.')}{anchor}{after}"


def _title(page: Path) -> str:
    heading = re.search(r"^# (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return heading[1].replace("`", "") if heading else page.stem


def _first_page() -> str:
    text = (ROOT / "README.md").read_text("utf-8")
    cards = "\n".join(
        f'<figure markdown="span">[![{caption}](docs/images/{name})](docs/images/{name})'
        f"<figcaption>{caption}</figcaption></figure>"
        for name, caption in GALLERY.items()
        if (ROOT / "docs" / "images" / name).is_file()
    )
    gallery = f'## Gallery\n\n<div class="gallery" markdown>\n{cards}\n</div>\n\n'
    return text.replace("## How it compares", f"{gallery}## How it compares", 1)


def _api_page() -> str:
    lines = [
        "# API reference",
        "",
        "`import gp_active_sensing as gas` offers these names.",
        "",
    ]
    source = ROOT / "ros_ws/src/gp_active_sensing/gp_active_sensing/__init__.py"
    offered = set(
        re.findall(r'^    "([A-Za-z]\w+)",$', source.read_text("utf-8"), re.MULTILINE)
    )
    shown = {name.rpartition(".")[2] for names in API.values() for name in names}
    if shown != offered:
        raise PluginError(
            f"site_hooks.API and __all__ differ: {sorted(shown ^ offered)}"
        )
    for chapter, names in API.items():
        lines += [f"## {chapter}", ""]
        for name in names:
            members = MEMBERS.get(name)
            lines += _entry(name, *([f"members: {members}"] if members else []))
    return "\n".join(lines)


def _modules_page() -> str:
    lines = ["# Modules", "", "For authors of policies, map formats and kernels.", ""]
    for name in MODULES:
        lines += _entry(name, "show_root_full_path: true", level=2)
    return "\n".join(lines)


def _entry(name: str, *options: str, level: int = 3) -> list[str]:
    words = [f"heading_level: {level}", *options]
    return [
        f"::: gp_active_sensing.{name}",
        "    options:",
        *(f"      {w}" for w in words),
        "",
    ]
