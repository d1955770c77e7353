"""ROS parameters from the configuration dataclasses: names, types, ranges and help.

A dataclass field ``a.b`` becomes the parameter ``a.b``; the policy's fields become
``policy.<field>``. ROS has fewer types of values than YAML, so these conventions hold:

- None: the parameter is *not set*. To replace a scenario's value by None, give ``.nan`` for a
  number, ``""`` for a text, and ``[]`` for a list (while the node runs, ``[.nan]``).
- A list of lists, or a field that allows several types: the parameter is a list of numbers, or a
  YAML text such as ``"[[0, 1], [2, 3]]"``.
- Integers are accepted for floats. Floats are accepted for integers if the conversion is exact.
- Keys of other nodes (under ``/**`` in a parameter file) are ignored. A misspelt key is a problem,
  and so is any unknown key under the node's name.

Wrong values raise no error when the parameters are declared: `ParameterTree.config` reports all of
them together. This module also has the dataclasses of all nodes except `active_sensing`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.parameter import Parameter

from gp_active_sensing.config import from_mapping, is_accepted, param, removed_hint
from gp_active_sensing.errors import ConfigError, suggest
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.ros.descriptors import Leaf, leaves_of, plain


@dataclass(frozen=True)
class SimulatorConfig:
    """Parameters of the node ``simulator``."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "exit_at_end": "was removed; the launch ends when active_sensing does, or press Ctrl-C",
        "reading": "was removed; readings are sensor_msgs/msg/Temperature",
    }

    scenario: str = param(help="name or path of the scenario to play")
    seed: int | None = param(None, help="seed in place of the scenario's seed", low=0)
    map_frame: str = param(
        "", help="frame of the poses and waypoints. Empty = the frame of the map"
    )
    policy_name: str = param(
        "",
        help="name of the policy that chooses the probe's waypoints. For some policies the "
        "simulator also reads the places on the way. Empty = the scenario's policy",
    )
    probes: tuple[str, ...] = param(
        (),
        help="names of the probes, which are the namespaces of their topics. Empty = one probe "
        "without a namespace. Unset = the number in the scenario, as probe_1, probe_2, …",
    )
    starts: tuple[str, ...] = param(
        (),
        help="start places of the probes, in the order of the probes, or the word random. If the "
        "list is shorter, the other starts are drawn by the seed. Empty = the first probe starts "
        "as in the scenario",
    )
    silent: str = param(
        "",
        help="names of probes without radio, separated by commas. Such a probe neither sends nor "
        "receives, and drives on to its last waypoint. May change at any time",
    )
    speed_factor: float = param(
        1.0, help="simulated seconds per real second", above=0.0, high=1000.0
    )
    keep: bool = param(
        False,
        help="keep the last 1000 readings and poses of each probe for a restarted node that "
        "requests them (reading.catch_up, pose.catch_up)",
    )


@dataclass(frozen=True)
class BagPlayerConfig:
    """Parameters of the node ``bag_player``."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "journal": "was removed; give listener: active_sensing",
        "finish": "was removed; give listener: active_sensing",
        "salvage": "was removed; `gp-active-sensing replay --salvage` reads a damaged bag",
    }

    bag: str = param(help="rosbag2 folder, .mcap or .db3 file, or the name of a shipped bag")
    rate: float = param(
        1.0, help="multiple of the bag's own speed. 0 = as fast as the node can process it", low=0.0
    )
    topics: tuple[str, ...] = param(
        (),
        help="topics of the bag to play. The player first waits for a subscriber of each topic. "
        "Empty = all topics; the player first waits for one subscriber of any topic",
    )
    wait: float = param(30.0, help="longest wait for subscribers", unit="s", low=0.0)
    listener: str = param(
        "",
        help="name of the node that processes the messages, such as active_sensing. With rate 0, "
        "the next message waits until this node reports progress on ~/journal or, without it, on "
        "/diagnostics. The node's ~/finish is called at the end",
    )


@dataclass(frozen=True)
class LivePageConfig:
    """Parameters of the node ``live_page``."""

    node: str = param("active_sensing", help="name of the node whose mission is shown")
    run_dir: str = param("", help="run directory to show. Empty or auto = that of the node")
    host: str = param(
        "127.0.0.1", help="address to listen on: this machine only, or 0.0.0.0 for all"
    )
    port: int = param(0, help="port. 0 = any free port, printed at the start", low=0, high=65535)
    private: bool = param(False, help="viewers need the token that is printed")
    allow_hosts: tuple[str, ...] = param(
        (), help="further host names under which the page may be opened"
    )
    tiles: str = param(
        "",
        help="base map: address of tiles with {z}, {x} and {y}, loaded by each viewer's browser. "
        "Empty = no base map",
    )


NODES: dict[str, type] = {
    "active_sensing": ActiveSensingConfig,
    "simulator": SimulatorConfig,
    "bag_player": BagPlayerConfig,
    "live_page": LivePageConfig,
}
"""Dataclass of a node's parameters, by the node's name."""


def owner_of(key: str, *, besides: type) -> str:
    """Return the name of the node that has the parameter `key`; "" = no node of this package.

    All keys below ``policy.`` and ``readings.`` belong to `active_sensing`. The node whose
    dataclass is `besides` is skipped.
    """
    others = {name: root for name, root in NODES.items() if root is not besides}
    if key.startswith(("policy.", "readings.")) and "active_sensing" in others:
        return "active_sensing"
    return next((name for name, root in others.items() if key in _names(root)), "")


@functools.cache
def _names(root: type) -> frozenset[str]:
    return frozenset(leaf.name for leaf in leaves_of(root, {"policy": None}))


_NEAR = 0.75
"""An unknown key counts as misspelt if its similarity (0 to 1) to a known key is at least this."""
_FOREIGN = ("use_sim_time", "start_type_description_service", "qos_overrides")


class ParameterTree:
    """Parameters of a node.

    The node needs ``automatically_declare_parameters_from_overrides=True``, so that the values from
    the command line and from files are known before the parameters are declared. Only a
    `GuardedNode` accepts empty lists.
    """

    def __init__(self, node: Any, root: type, *, live: tuple[str, ...] = ()) -> None:
        self._node = node
        self._root = root
        self._live = frozenset(live)
        self._leaves: dict[str, Leaf] = {}
        self._sections: Mapping[str, type | None] = {}
        self._wrong: dict[str, Any] = {}
        self._problems: list[str] = []
        self.locked: Callable[[], bool] = lambda: False
        """Function that returns True while only the parameters in `live` may change."""
        self.checks: dict[str, Callable[[Any], str]] = {}
        """For parameters in `live`: function that returns why a value is impossible now, or ""."""
        self.given = self._apply_overrides()
        node.add_pre_set_parameters_callback(self._of_right_type)
        node.add_on_set_parameters_callback(self._on_set)

    @property
    def names(self) -> list[str]:
        """Names of the declared parameters."""
        return list(self._leaves)

    def problem(self, text: str) -> None:
        """Add a problem, which `config` will report."""
        self._problems.append(text)

    def declare(self, defaults: Mapping[str, Any], **sections: type | None) -> None:
        """Declare all parameters.

        Args:
            defaults: nested plain data that replaces the defaults of the dataclasses.
            sections: for each field whose parameters depend on a choice (``policy``): the dataclass
                of these parameters; None = the choice is unknown.
        """
        names = _quantities(self.given, defaults)
        leaves = leaves_of(self._root, sections, {"readings": names})
        self._leaves = {leaf.name: leaf for leaf in leaves}
        self._sections = sections
        flat = _flatten(defaults, self._leaves)
        for name, leaf in self._leaves.items():
            if name in self.given:
                decoded = leaf.decode(self.given[name])
                if self._try_to_declare(leaf, leaf.encode(decoded)):
                    if decoded == [] and not leaf.optional:  # ROS has no type for an empty list
                        self._wrong[name] = decoded
                    continue
            if not self._try_to_declare(leaf, leaf.encode(flat.get(name, leaf.default))):
                self._try_to_declare(leaf, None)
            if name in self.given:  # must follow the declaration, which clears the callback
                self._wrong[name] = self.given[name]
        self._note_unknown()

    def mapping(self) -> dict[str, Any]:
        """Return the values as nested plain data, as `from_mapping` needs them."""
        result: dict[str, Any] = {}
        for name, leaf in self._leaves.items():
            if name in self._wrong:
                value = self._wrong[name]
            else:
                value = self._node.get_parameter_or(name).value
                if value is None and not leaf.optional:
                    continue  # the dataclass has a default or reports the missing value
                value = leaf.decode(value)
            target = result
            *parents, last = name.split(".")
            for parent in parents:
                target = target.setdefault(parent, {})
            target[last] = value
        return result

    def config(self, check: Callable[[dict[str, Any]], Any] | None = None) -> Any:
        """Return the configuration.

        `check` raises ConfigError if it finds further problems, such as a wrong parameter of the
        policy.

        Raises:
            ConfigError: values are wrong; the message lists all problems and parameter names.
        """
        mapping = self.mapping()
        problems = list(self._problems)
        built: Any = None
        try:
            built = from_mapping(self._root, mapping)
        except ConfigError as error:
            problems.extend(error.problems)
        try:
            if check is not None:
                check(mapping)
        except ConfigError as error:
            problems.extend(p for p in error.problems if p not in problems)
        if problems:
            raise ConfigError(problems, source="parameters")
        return built

    def _apply_overrides(self) -> dict[str, Any]:
        given = {}
        for name, parameter in self._node.get_parameters_by_prefix("").items():
            if name.split(".", maxsplit=1)[0] not in _FOREIGN:
                given[name] = plain(parameter.value)
                self._node.undeclare_parameter(name)
        given.update({name: [] for name in getattr(self._node, "empty_overrides", ())})
        return given

    def _try_to_declare(self, leaf: Leaf, value: Any) -> bool:
        descriptor = leaf.descriptor()
        first: Any = value
        if value is None:
            first = None if descriptor.dynamic_typing else leaf.kind
        elif leaf.kind is not None and Parameter.Type.from_parameter_value(value) != leaf.kind:
            return False
        try:
            self._node.declare_parameter(leaf.name, first, descriptor, ignore_override=True)
        except (InvalidParameterTypeException, InvalidParameterValueException):
            return False
        return True

    def _note_unknown(self) -> None:
        sections = {name.split(".", maxsplit=1)[0] for name in self._leaves if "." in name}
        in_files: Mapping[str, bool] = getattr(self._node, "keys_in_files", {})
        for name in self.given:
            if name in self._leaves or is_accepted(self._root, name, self.given[name]):
                continue
            owner = owner_of(name, besides=self._root)
            first, _, rest = name.partition(".")
            section = self._sections.get(first)
            removed = removed_hint(self._root, name) or (section and removed_hint(section, rest))
            text = f"{name}: {removed or 'unknown parameter.' + suggest(name, self._leaves)}"
            if name in getattr(self._root, "IGNORED", ()):
                run_dir = str(self.given.get("run_dir") or "")
                if not run_dir or not Path(run_dir, "config.yaml").exists():
                    self._node.get_logger().warning(text)  # not at a restart of this directory
            elif in_files.get(name):  # under this node's name
                if owner and not removed:
                    text = f"{name}: belongs to the node {owner}, not to this one"
                self._problems.append(text)
            elif owner:
                continue
            elif removed or first in sections or suggest(name, self._leaves, _NEAR):
                self._problems.append(text)
            elif name not in in_files:  # not under /**, which is for all nodes
                self._node.get_logger().warning(f"{text} It is not used")

    def _of_right_type(self, parameters: list[Parameter]) -> list[Parameter]:
        return [self._leaves[p.name].typed(p) if p.name in self._leaves else p for p in parameters]

    def _on_set(self, parameters: list[Parameter]) -> SetParametersResult:
        try:
            problems = [text for p in parameters if (text := self._refusal(p))]
        except Exception as error:  # the exception would end the node in rclpy
            problems = [f"cannot check {', '.join(p.name for p in parameters)}: {error!r}"]
        if problems:
            return SetParametersResult(successful=False, reason="; ".join(problems))
        for parameter in parameters:
            self._wrong.pop(parameter.name, None)
        return SetParametersResult(successful=True)

    def _refusal(self, parameter: Parameter) -> str:
        """Return why a parameter must not be set; "" = it may be set."""
        leaf = self._leaves.get(parameter.name)
        if leaf is None or not self._node.has_parameter(parameter.name):
            return ""
        if self.locked() and parameter.name not in self._live:
            return (
                f"{parameter.name} is read when the node is configured: "
                "deactivate and clean up the node first, then set it and configure again"
            )
        value = plain(parameter.value)
        problem = leaf.check(value)
        if not problem and self.locked() and parameter.name in self.checks:
            problem = self.checks[parameter.name](leaf.decode(value))
        return problem


def _quantities(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    parts = [key.split(".") for key in given if key.startswith("readings.")]
    own = (part[1] for part in parts if len(part) > 2)
    return list(dict.fromkeys([*defaults.get("readings", {}), *own]))


def _flatten(
    data: Mapping[str, Any], leaves: Mapping[str, Leaf], prefix: str = ""
) -> dict[str, Any]:
    """Return the values in nested data by dotted name; skip keys that are not parameters."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{prefix}{key}"
        if name in leaves:
            flat[name] = value
        elif isinstance(value, Mapping):
            flat |= _flatten(value, leaves, f"{name}.")
    return flat
