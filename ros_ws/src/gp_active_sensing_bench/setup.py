"""All metadata of the package: colcon cannot read a ``[project]`` table in pyproject.toml."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = "gp_active_sensing_bench"
CORE = "gp_active_sensing"
VERSION = "0.1.0"  # that of gp_active_sensing/_version.py; a test compares them
HERE = Path(__file__).parent


def shared_files() -> list[tuple[str, list[str]]]:
    """List the experiments for ``share/<package>/experiments``."""
    files = [path for path in sorted((HERE / "experiments").rglob("*")) if path.is_file()]
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
    maintainer_email="maintainers@gp-active-sensing.invalid",  # there is no public address
    license="Apache-2.0",
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
        f"{CORE}.reports": [f"experiment = {NAME}.outputs:report_page"],
    },
)
