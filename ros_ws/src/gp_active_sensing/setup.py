"""All metadata of the package: colcon cannot read a ``[project]`` table in pyproject.toml."""

import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.develop import develop
from setuptools.command.install_scripts import install_scripts

NAME = "gp_active_sensing"
HERE = Path(__file__).parent
SHARED_FOLDERS = ("launch", "maps", "sim", "config", "rviz", "foxglove", "bags")

# The Jazzy line of the ROS wheels; without the exact pins pip takes the newer distribution's.
# Other platforms use the ROS of their system.
ROS_WHEELS = (
    "ros-rclpy[fastrtps]==7.1.6",
    "ros-std-msgs==5.3.6",
    "ros-geometry-msgs==5.3.6",
    "ros-sensor-msgs==5.3.6",
    "ros-nav-msgs==5.3.6",
    "ros-visualization-msgs==5.3.6",
    "ros-diagnostic-msgs==5.3.6",
    "ros-std-srvs==5.3.6",
)
HAS_ROS_WHEELS = 'platform_system == "Linux" and platform_machine == "x86_64"'


def version() -> str:
    """Read ``__version__`` without importing the package, whose dependencies may be missing."""
    text = (HERE / NAME / "_version.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if match is None:
        message = f'{NAME}/_version.py: expected a line __version__ = "X.Y.Z", found none'
        raise RuntimeError(message)
    return match.group(1)


COMMAND = "gp-active-sensing"


def put_on_path(scripts: str) -> None:
    """Copy the command from ``lib/<package>/``, where colcon puts scripts, to ``bin/``.

    What is in ``bin`` of a workspace is on the PATH once it is sourced. pip puts scripts there
    itself, and elsewhere than in ``lib/<package>``: then nothing is done.
    """
    folder = Path(scripts)
    if folder.parts[-2:] == ("lib", NAME) and (folder / COMMAND).is_file():
        target = folder.parents[1] / "bin"
        target.mkdir(exist_ok=True)
        shutil.copy2(folder / COMMAND, target / COMMAND)


class InstallScripts(install_scripts):
    """Scripts as ``colcon build`` installs them."""

    def run(self) -> None:
        """Install the scripts."""
        super().run()
        put_on_path(self.install_dir)
        copied = Path(self.install_dir).parents[1] / "bin" / COMMAND
        if copied.is_file() and str(copied) not in self.outfiles:
            self.outfiles.append(str(copied))  # what an uninstallation removes


class Develop(develop):
    """Scripts as ``colcon build --symlink-install`` installs them."""

    def install_wrapper_scripts(self, dist: object) -> None:
        """Install the scripts."""
        super().install_wrapper_scripts(dist)
        put_on_path(self.script_dir)


def shared_files() -> list[tuple[str, list[str]]]:
    """List the files of the data folders for ``share/<package>/``, subfolders kept."""
    by_folder: dict[str, list[str]] = {}
    for folder in SHARED_FOLDERS:
        for path in sorted((HERE / folder).rglob("*")):
            relative = path.relative_to(HERE)
            hidden = any(p.startswith(".") or p == "__pycache__" for p in relative.parts)
            if path.is_file() and not hidden:
                target = f"share/{NAME}/{relative.parent.as_posix()}"
                by_folder.setdefault(target, []).append(relative.as_posix())
    return sorted(by_folder.items())


setup(
    name=NAME,
    version=version(),
    description="Gaussian-process active sensing for ROS 2: nonmyopic planning of where to measure",
    long_description=(HERE / "README.md").read_text(encoding="utf-8")
    if (HERE / "README.md").is_file()
    else "",
    long_description_content_type="text/markdown",
    maintainer="gp_active_sensing maintainers",
    maintainer_email="maintainers@gp-active-sensing.invalid",  # there is no public address
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=[
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed"], f"{NAME}.report": ["assets/*"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *shared_files(),
    ],
    cmdclass={"install_scripts": InstallScripts, "develop": Develop},
    zip_safe=False,
    install_requires=[
        "numpy>=1.26",
        "scipy>=1.11",
        "shapely>=2.0",
        "pyyaml>=6.0",
        "defusedxml>=0.7.1",  # 0.7.0 has a ParseError of its own that nothing raises
        "click>=8.1",
        "rich>=13.0",
    ],
    extras_require={
        # colcon runs no test, and says so nowhere, when an extra of this name is missing.
        "test": [
            "pytest>=7.4",
            "pytest-timeout",
            "pytest-xdist",
            "hypothesis",
            "geopandas",  # reads what `export` writes, as a GIS does
            "osmnx",  # graphs of streets, as users bring them
            "joblib",
            "click>=8.2",
        ],
        "ros": [f"{wheel} ; {HAS_ROS_WHEELS}" for wheel in ROS_WHEELS],
        "bag": ["rosbags==0.11.9", "mcap"],
        "maps": [
            "pyproj>=3.5",
            "osmium>=4.0",
            "pillow>=9.0",
            "pyogrio>=0.7.2",
            "rasterio>=1.3",
            "networkx>=2.8",
        ],
        "plot": ["matplotlib"],
        "sumo": ["libsumo>=1.28"],
        "web": ["tornado>=6.3"],
        "site": ["mkdocs-material>=9.5", "mkdocstrings[python]>=0.26"],
        "dev": [
            "ruff",
            "mypy",
            "codespell",
            "scipy-stubs",
            "types-defusedxml",
            "types-networkx",
            "types-pyyaml",
            "types-shapely",
            "setuptools",
            "colcon-core",
            "colcon-ros",
            "colcon-test-result",
            "colcon-bash",
            "colcon-zsh",
            "colcon-parallel-executor",
        ],
    },
    entry_points={
        "console_scripts": [
            f"{COMMAND} = {NAME}.cli:main",
            f"active_sensing = {NAME}.ros.active_sensing_node:main",
            f"simulator = {NAME}.ros.simulator_node:main",
            f"bag_player = {NAME}.ros.bag_player_node:main",
            f"live_page = {NAME}.ros.live_page_node:main",
        ]
    },
)
