"""All metadata of the package: colcon cannot read a ``[project]`` table in pyproject.toml."""

import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

NAME = "gp_active_sensing_learning"
CORE = "gp_active_sensing"
HERE = Path(__file__).parent
VERSION = ET.parse(HERE / "package.xml").findtext("version")  # `make version` writes it

setup(
    name=NAME,
    version=VERSION,
    description="Learning length-scales and kernels for gp_active_sensing, with torch and GPyTorch",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    maintainer="gp_active_sensing maintainers",
    maintainer_email="maintainers@gp-active-sensing.invalid",  # no public address
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed"], f"{NAME}.report": ["assets/*"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
    ],
    zip_safe=False,
    install_requires=[f"{CORE}=={VERSION}", "torch==2.13.0", "gpytorch"],
    extras_require={
        "test": ["pytest>=7.4", "pytest-timeout", "pytest-xdist"],
        "jobs": ["joblib"],
    },
    entry_points={
        f"{CORE}.commands": [
            f"learn = {NAME}.commands.learn:learn",
            f"model = {NAME}.commands.model:model",
        ]
    },
)
