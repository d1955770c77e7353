"""Options, markers and fixtures that the tests of all three packages share."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gp_active_sensing
from gp_active_sensing.util.process import one_blas_thread
from tests.browser import NAMES, READY, Browser, Page, find_browser
from tests.heavy import demand

one_blas_thread()  # nothing above loads numpy

PACKAGE_ROOT = Path(__file__).resolve().parents[1]
SEEDS = 8
"""Random cases of a property, unless the option ``--seeds`` says otherwise."""


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test the source tree where the installed package is meant (see .ci/run)."""
    _give_hypothesis_its_cases(config.getoption("--seeds"))
    prefix = os.environ.get("GPAS_TEST_INSTALLED")
    found = Path(gp_active_sensing.__file__).resolve()
    if prefix and Path(prefix).resolve() not in found.parents:
        message = f"expected gp_active_sensing below {prefix}, but it was imported from {found}"
        raise pytest.UsageError(message)


def pytest_report_header() -> list[str]:
    """Say which tests are left out for want of a library."""
    folders = {"ros": "rclpy", "replay": "rosbags"}
    return [
        f"tests/{folder}: left out, {module} is not installed"
        for folder, module in folders.items()
        if importlib.util.find_spec(module) is None
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say how many random cases a property is tried on."""
    told = f"random cases of a property, default {SEEDS}; make test-long: 40; a night: 1000"
    parser.addoption("--seeds", type=int, default=SEEDS, metavar="N", help=told)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with the marker ``seeds(share)`` its random cases: that share of ``--seeds``."""
    for marker in metafunc.definition.iter_markers("seeds"):
        share = marker.args[0] if marker.args else 1.0
        cases = math.ceil(share * metafunc.config.getoption("--seeds"))
        metafunc.parametrize("seed", range(cases))


def _give_hypothesis_its_cases(seeds: int) -> None:
    """The same cases on every machine, unless more are asked for than usual."""
    with contextlib.suppress(ImportError):
        from hypothesis import settings

        usual = seeds <= SEEDS
        settings.register_profile(
            "seeds", deadline=None, max_examples=seeds, print_blob=not usual, derandomize=usual
        )
        settings.load_profile("seeds")


@pytest.fixture(scope="session")
def dose(pytestconfig: pytest.Config) -> float:
    """What a test multiplies its number of draws or decisions by, 1 unless ``--seeds`` is given."""
    return float(pytestconfig.getoption("--seeds")) / SEEDS


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Whatever ``--dist`` says, keep a file on one worker, and of test_docs.py a page."""
    from xdist.scheduler import LoadScopeScheduling

    class FileOrPage(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            page = re.search(r"test_docs\.py::.*\[(.+\.md)", nodeid)
            return page[1] if page else nodeid.partition("::")[0]

    # In the order of the folders: the files with few tests are the slow ones, and not for the end.
    config.option.loadscopereorder = False
    return FileOrPage(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with the marker ``heavy(extra)`` where that extra is not installed."""
    for marker in item.iter_markers("heavy"):
        demand(*marker.args)


@pytest.fixture(scope="session")
def package_root() -> Path:
    """The folder of setup.py and package.xml in the source tree."""
    return PACKAGE_ROOT


@pytest.fixture(autouse=True, scope="session")
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Embeddings, spectra, tokens and runs are kept for these tests only, beside the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("ROS_HOME", str(tmp_path_factory.mktemp("ros_home")))
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of measured data: that of GPAS_DATA, or shared/data beside the repository."""
    named = os.environ.get("GPAS_DATA")
    folder = Path(named) if named else PACKAGE_ROOT.parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}; GPAS_DATA names the folder that has them")
    return folder


@pytest.fixture
def asking() -> Iterator[None]:
    """Have a policy known by the name `asking`, which asks an expert."""
    from tests.unit.experts.asking import registered

    with registered():
        yield


@pytest.fixture(autouse=True)
def _package_logger_as_it_was() -> Iterator[None]:
    """Undo what a command run inside a test did to the package's logger."""
    package = logging.getLogger("gp_active_sensing")
    before = (list(package.handlers), package.level, package.propagate)
    yield
    package.handlers, package.propagate = before[0], before[2]
    package.setLevel(before[1])


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One headless browser for all tests; without one they skip, or fail where one must be."""
    if find_browser() is None:
        reason = f"no browser on PATH ({', '.join(NAMES)})"
        if os.environ.get("GPAS_REQUIRE_BROWSER"):
            pytest.fail(f"{reason}, and GPAS_REQUIRE_BROWSER is set")
        pytest.skip(reason)
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page and check, in the end, that it neither complained nor asked for anything."""
    opened: list[Page] = []

    def show(path: Path, fragment: str = "", **looks: Any) -> Page:
        page = browser.page(**looks)
        opened.append(page)
        page.open(path, fragment, ready=READY)
        assert page.evaluate(READY) == "yes", page.complaints
        return page

    yield show
    browser.wait(0.05)
    for page in opened:
        assert page.complaints == []
        assert page.requests == []
        assert page.evaluate("window.bad === undefined")
        page.close()
