"""All metadata of the package: colcon cannot read a ``[project]`` table in pyproject.toml."""

import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

NAME = "gp_active_sensing_bench"
CORE = "gp_active_sensing"
HERE = Path(__file__).parent
VERSION = ET.parse(HERE / "package.xml").findtext("version")  # `make version` writes it


def shared_files() -> list[tuple[str, list[str]]]:
    """List the experiments for ``share/<package>/experiments``, without their results."""
    files = sorted((HERE / "experiments").glob("*.*"))
    folders = sorted({path.parent for path in files})
    return [
        (
            f"share/{NAME}/{folder.relative_to(HERE).as_posix()}",
            [path.relative_to(HERE).as_posix() for path in files if path.parent == folder],
        )
        for folder in folders
    ]


setup(
    name=NAME,
    version=VERSION,
    description="Experiments, benchmarks and the arena of gp_active_sensing",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    maintainer="gp_active_sensing maintainers",
    maintainer_email="maintainers@gp-active-sensing.invalid",  # no public address
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed", "assets/*"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *shared_files(),
    ],
    zip_safe=False,
    install_requires=[f"{CORE}=={VERSION}", "joblib", "matplotlib"],
    extras_require={
        "test": ["pytest>=7.4", "pytest-timeout", "pytest-xdist"],
    },
    entry_points={
        f"{CORE}.commands": [f"experiment = {NAME}.command:experiment"],
        f"{CORE}.live_fields": [f"sumo = {NAME}.traffic.live:build_traffic"],
        f"{CORE}.reports": [f"experiment = {NAME}.outputs:report_page"],
    },
)
