"""Take the pictures of README and docs from report pages; needs a Chromium on PATH.

    python docs/images/make_pictures.py            # all
    python docs/images/make_pictures.py lake       # one

Each scenario is run as shipped, its report page is opened, and a part of it is photographed. The
live pages (`live_desk`, `live_phone`) are photographed while the run waits in the middle; they need
tornado.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from gp_active_sensing.util.process import one_blas_thread

one_blas_thread()

from gp_active_sensing.report import write_report  # noqa: E402
from gp_active_sensing.sim import Scenario, load_scenario, run_scenario  # noqa: E402
from gp_active_sensing.sim.runner import SimulationRunner  # noqa: E402 - loads numpy
from gp_active_sensing.web.access import CommandAnswer, WatchOptions  # noqa: E402
from gp_active_sensing.web.serve import make_server, served  # noqa: E402

HERE = Path(__file__).resolve().parent
HELPER = HERE.parents[1] / "ros_ws" / "src" / "gp_active_sensing" / "tests" / "browser.py"
WIDTH = 1100  # CSS pixels, which the picture has as well
MOST_BYTES = 100_000
COLOURS = 256  # of the palette of a picture that would be larger
MARGIN = 8
READY = "document.documentElement?.dataset.ready === 'yes'"


@dataclass(frozen=True)
class Picture:
    """What to photograph.

    Args:
        stage: where the slider stands, None = at the last one.
        stages: several of them, one below the other.
        last: selector of the element at the bottom.
        first: of that at the top.
        fleet: names of several probes that drive it together.
        scenario: what is run; "" = the one of the picture's name.
        changes: keys of the scenario with other values, as after ``--set``.
        live: photograph the live page while the run is at its `stage`.
        width: of the window, CSS pixels.
        dark: in the dark theme.
    """

    stage: int | None = None
    stages: tuple[int, ...] = ()
    last: str = "#field"
    first: str = "#field"
    fleet: tuple[str, ...] = ()
    scenario: str = ""
    changes: tuple[str, ...] = ()
    live: bool = False
    width: int = WIDTH
    dark: bool = False


_BOAT = ("policy={name: tour}", "budget.readings=null", "budget.metres=9000")
"""The lake with the default policy, and metres for a budget, as a boat has them."""
PICTURES = {
    "town": Picture(stage=40, last="#charts figure:nth-child(3)"),
    "town_slots": Picture(),
    "town_live": Picture(),
    "town_fleet": Picture(fleet=("probe_1", "probe_2", "probe_3"), scenario="town"),
    "lake": Picture(),
    "warehouse": Picture(),
    "terrain": Picture(),
    "bloom": Picture(),
    "thermocline": Picture(),
    "hot_spot": Picture(),
    "plume": Picture(stages=(10, 35, 60)),
    "live_desk": Picture(stage=60, first="header", live=True, scenario="lake", changes=_BOAT),
    "live_phone": Picture(
        stage=60,
        first="#live",
        last="#field figure:nth-of-type(2)",
        live=True,
        scenario="lake",
        changes=_BOAT,
        width=390,
        dark=True,
    ),
}


def main() -> None:
    """Read the arguments and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("scenarios", nargs="*", choices=[[], *PICTURES], help="default: all")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    options = parser.parse_args()
    browser = _browser_module()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with browser.Browser(Path(folder) / "profile") as chromium:
            for name in options.scenarios or PICTURES:
                picture = PICTURES[name]
                scenario, run = (
                    load_scenario(picture.scenario or name, overrides=picture.changes),
                    Path(folder) / name,
                )
                if picture.live:
                    with under_way(scenario, picture.stage or 1, run) as address:
                        take(chromium, address, picture, options.out / f"{name}.png")
                    continue
                if picture.fleet:
                    rehearse(scenario, picture.fleet, run)
                else:
                    run_scenario(scenario, run)
                take(chromium, write_report(run), picture, options.out / f"{name}.png")


def rehearse(scenario: Scenario, names: tuple[str, ...], run: Path) -> None:
    """Play a mission of several probes."""
    played = SimulationRunner(scenario, names, parameters={"run_dir": str(run)})
    played.run(24 * 3600.0)
    played.parts.recorder.save(played.mission, "finished")
    played.close()


@contextmanager
def under_way(scenario: Scenario, stage: int, run: Path) -> Iterator[str]:
    """Run a scenario up to a stage and let it wait there; yield the address of its live page."""
    there, on = threading.Event(), threading.Event()

    def wait(record: Mapping[str, Any]) -> None:
        if record["stage"] == stage:
            there.set()
            on.wait()
            sys.exit()  # of the thread: the rest of the mission is not needed

    async def command(name: str) -> CommandAnswer:
        return CommandAnswer(False, f"this is a picture: no {name}")

    mission = threading.Thread(target=run_scenario, args=(scenario, run), kwargs={"on_stage": wait})
    mission.start()
    options = WatchOptions(token_file=run.with_suffix(".token"))
    try:
        there.wait()
        server = make_server(run, options, command)
        with served(server):
            yield server.entry
    finally:
        on.set()
        mission.join()


def take(chromium: object, report: Path | str, picture: Picture, file: Path) -> None:
    """Photograph a part of a page, once or at several stages."""
    if picture.stages:
        from PIL import Image

        parts = []
        for stage in picture.stages:
            _photograph(chromium, report, f"#stage={stage}", picture, file)
            parts.append(Image.open(io.BytesIO(file.read_bytes())).convert("RGB"))
        whole = Image.new("RGB", (parts[0].width, sum(part.height for part in parts)))
        top = 0
        for part in parts:
            whole.paste(part, (0, top))
            top += part.height
        whole.save(file, optimize=True)
    else:
        fragment = "" if picture.stage is None or picture.live else f"#stage={picture.stage}"
        _photograph(chromium, report, fragment, picture, file)
    _shrink(file)


def _photograph(
    chromium: Any, report: Path | str, fragment: str, picture: Picture, file: Path
) -> None:
    """Photograph a part of a page, of a file or of a server, as it is at a stage."""
    page = chromium.page(width=picture.width, height=900, dark=picture.dark)
    if isinstance(report, Path):
        page.open(report, fragment, ready=READY)
    else:
        page.call("Page.navigate", url=report)
        shown = "parseInt(document.getElementById('where').textContent.slice('stage '.length))"
        page.until(f"{READY} && {shown} >= {picture.stage}")
    top, bottom = page.evaluate(
        f"['{picture.first}', '{picture.last}'].map((s) => document.querySelector(s))"
        ".map((e) => e.getBoundingClientRect())"
        ".map((box, i) => window.scrollY + (i ? box.bottom : box.top))"
    )
    page.picture(file, (0.0, top - MARGIN, picture.width, bottom - top + 2 * MARGIN))
    page.close()


def _shrink(file: Path) -> None:
    """Give a large picture a palette where Pillow is there: a third of the size."""
    if file.stat().st_size <= MOST_BYTES:
        return
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(io.BytesIO(file.read_bytes())) as image:
        # The method keeps the colours of what is small, such as the robot; the rounds those of the
        # paper and the maps.
        method, plain = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
        small = image.convert("RGB").quantize(COLOURS, method=method, kmeans=8, dither=plain)
    small.save(file, optimize=True)


def _browser_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("browser", HELPER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["browser"] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
