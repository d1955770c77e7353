"""Check that ROS 2 is usable before rclpy is imported; define the exit codes of nodes.

rclpy comes from a sourced installation (``/opt/ros/...``) or from the wheels of the extra
``[ros]``. If both exist, two copies of the same C libraries would be loaded in an undefined order.
The check then fails with an explanation.

Exit code 0 is a normal end: the mission is over, or an end was requested (Ctrl-C, SIGTERM, a
lifecycle manager). A node that ends with `REFUSED` would fail again in the same way. A node that
ends with another code can be started again.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gp_active_sensing.errors import MissingDependencyError
from gp_active_sensing.util.lazy import install_command
from gp_active_sensing.util.process import THREAD_VARIABLES
from gp_active_sensing.util.resources import find_resource

REQUIRED = (
    "rclpy",
    "std_msgs",
    "std_srvs",
    "geometry_msgs",
    "sensor_msgs",
    "nav_msgs",
    "visualization_msgs",
    "diagnostic_msgs",
    "lifecycle_msgs",
    "rosgraph_msgs",
)
"""Python packages that the nodes import."""

_PROGRAMS = ("active_sensing", "simulator", "bag_player", "live_page")
_PROFILE_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
_SEARCH_PATHS = ("AMENT_PREFIX_PATH", "PYTHONPATH", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class RosEnvironment:
    """ROS installations on this machine.

    Args:
        wheels: version of the rclpy wheel in this Python environment; None = no wheel.
        sourced: prefixes of sourced ROS installations.
        missing: required packages that cannot be imported.
        wheels_exist: True = the wheels are built for this platform (Linux on x86_64).
    """

    wheels: str | None
    sourced: tuple[str, ...]
    missing: tuple[str, ...]
    wheels_exist: bool = True

    @property
    def mixed(self) -> bool:
        """True if both the wheels of ROS and a sourced installation exist."""
        return self.wheels is not None and bool(self.sourced)

    @property
    def usable(self) -> bool:
        """True if the nodes can run."""
        return not self.missing and not self.mixed

    @property
    def summary(self) -> str:
        """One-line description of the installations, for the command `doctor`."""
        if self.mixed:
            return f"mixed: wheels {self.wheels} and {', '.join(self.sourced)}"
        origin = f"wheels {self.wheels}" if self.wheels else ", ".join(self.sourced)
        if not self.missing:
            return f"found ({origin or 'on the Python path'})"
        if origin:
            return f"incomplete ({origin}): missing {', '.join(self.missing)}"
        return "not found"

    @property
    def advice(self) -> str:
        """Advice on how to repair the installation; "" = the nodes can run."""
        if self.mixed:
            return (
                f"the ROS wheels (ros-rclpy {self.wheels}) are installed in {sys.prefix} and a ROS "
                f"installation is sourced ({', '.join(self.sourced)}); their libraries must not be "
                "mixed. Use one: open a shell that does not source ROS, or a Python environment "
                "without the extra [ros] (pip uninstall ros-rclpy)"
            )
        if not self.missing:
            return ""
        if self.sourced:
            packages = " ".join(
                f"ros-$ROS_DISTRO-{name.replace('_', '-')}" for name in self.missing
            )
            return (
                f"the sourced ROS ({', '.join(self.sourced)}) lacks {', '.join(self.missing)} for "
                f"Python {platform.python_version()}: sudo apt install {packages}, and use the "
                "Python version that this ROS was built for"
            )
        source = (
            "source a ROS 2 installation (Jazzy or newer), e.g. source /opt/ros/jazzy/setup.bash"
        )
        if self.wheels_exist:
            return f"{install_command('ros')}, or {source}"
        return f"{source} (the pip wheels exist for Linux on x86_64 only)"


def is_importable(name: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _wheel_version() -> str | None:
    try:
        return importlib.metadata.version("ros-rclpy")
    except importlib.metadata.PackageNotFoundError:
        return None


def inspect_ros(
    environ: Mapping[str, str] = os.environ,
    *,
    can_import: Callable[[str], bool] = is_importable,
    wheel_version: Callable[[], str | None] = _wheel_version,
    system: tuple[str, str] | None = None,
) -> RosEnvironment:
    """Find ROS 2 installations without importing them; the defaults are those of this process.

    `system` is the pair of operating system and processor type, such as ("Linux", "x86_64").
    """
    system = (platform.system(), platform.machine()) if system is None else system
    return RosEnvironment(
        wheels=wheel_version(),
        sourced=_sourced(environ),
        missing=tuple(name for name in REQUIRED if not can_import(name)),
        wheels_exist=system == ("Linux", "x86_64"),
    )


def require_ros(found: RosEnvironment | None = None) -> None:
    """Check that the nodes can run.

    Raises:
        MissingDependencyError: ROS is missing, incomplete or mixed; the message has advice.
    """
    found = inspect_ros() if found is None else found
    if found.usable:
        return
    head = "two ROS installations at once" if found.mixed else f"ROS 2 is {found.summary}"
    msg = f"{head}: {found.advice}"
    raise MissingDependencyError(msg)


def require_ros_in(module: str) -> None:
    """Check that the nodes can run, before a node's module imports ROS.

    If the module is run as a program, Ctrl-C then ends its imports without a traceback.

    Raises:
        MissingDependencyError: the nodes cannot run, and the module is imported by other code.
        SystemExit: the nodes cannot run, and the module is run as a program.
    """
    script = Path(getattr(sys.modules["__main__"], "__file__", None) or "").name
    is_program = module == "__main__" or script in _PROGRAMS
    if is_program:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        require_ros()
    except MissingDependencyError as error:
        if not is_program:
            raise
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(REFUSED) from None


def _sourced(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the prefixes of the ROS installations that are on the search paths."""
    prefixes: dict[str, None] = {}
    for variable in _SEARCH_PATHS:
        for entry in environ.get(variable, "").split(os.pathsep):
            parts = Path(entry).parts
            if parts[:3] == ("/", "opt", "ros") and len(parts) > 3:
                prefixes[str(Path(*parts[:4]))] = None
            elif variable == "AMENT_PREFIX_PATH" and (Path(entry) / "share" / "rclpy").is_dir():
                # The wheels install share/ into a virtual environment on the search path.
                if Path(entry).resolve() != Path(sys.prefix).resolve():
                    prefixes[entry] = None
    return tuple(prefixes)


def node_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that nodes need and that are not set.

    With the package's profile, Fast DDS finds other nodes within 0.25 s instead of up to 3 s. BLAS
    uses one thread, which is faster for small matrices and gives bit-identical results.
    """
    added = {name: "1" for name in THREAD_VARIABLES if name not in environment}
    if not any(name in environment for name in _PROFILE_VARIABLES):
        added[_PROFILE_VARIABLES[0]] = str(find_resource("config", "fastdds.xml").absolute())
    return added


FAILED = 1
"""Exit code after an error at run time; Python uses the same code after an exception."""
REFUSED = 2
"""Exit code for unusable parameters, files, run directory or installation."""

_ASKED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def crashed(code: int) -> bool:
    """Return whether a node that ended with this code (-n = signal n) should be started again."""
    return code not in (0, REFUSED)


def ended_in_order(code: int, *, asked: bool) -> bool:
    """Return whether a process that ended with this code (-n = signal n) ended as expected.

    `asked` True = the process was requested to end, so that SIGHUP, SIGINT and SIGTERM may end it.
    """
    return code == 0 or (asked and code in {c for s in _ASKED for c in (-s, 128 + s)})


def describe(code: int) -> str:
    """Describe an exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
