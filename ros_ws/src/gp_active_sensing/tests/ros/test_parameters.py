from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from rcl_interfaces.msg import ParameterType
from rclpy.node import Node
from rclpy.parameter import Parameter

from gp_active_sensing.config import param
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.mission.config import ActiveSensingConfig
from gp_active_sensing.planning import build_policy, policies
from gp_active_sensing.ros.descriptors import leaves_of
from gp_active_sensing.ros.environment import REFUSED
from gp_active_sensing.ros.parameters import ParameterTree
from tests.cases import case
from tests.chooser import CHOOSER
from tests.ros.conftest import Ros, wait_until
from tests.ros.probe import sensing


@dataclass(frozen=True)
class Inner:
    size: float = param(2.0, help="how large", unit="m", above=0.0, high=10.0)
    limit: float | None = param(None, help="how long", unit="s", low=0.0)
    kind: str = param("small", help="which", choices=("small", "large"))


@dataclass(frozen=True)
class Outer:
    name: str = param(help="what it is called")
    inner: Inner = field(default_factory=Inner)
    count: int = param(3, help="how many", low=1, high=5)
    flag: bool = param(False, help="whether")
    scales: tuple[float, ...] = param((1.0, 2.0), help="which ones", unit="m", above=0.0)
    words: tuple[str, ...] = param(("a",), help="words", min_items=1)
    corner: tuple[float, float] = param((0.0, 0.0), help="where", unit="m")
    mixed: tuple[float | tuple[float, ...], ...] = param((1.0,), help="nested", above=0.0)
    boxes: tuple[tuple[tuple[float, float], ...], ...] = param((), help="boxes", unit="m")
    sorts: tuple[Inner, ...] = param((), help="sorts")


Make = Callable[..., Any]


@pytest.fixture
def make(ros: Ros) -> Make:
    def build(*overrides: str, root: type = Outer, defaults: Any = None) -> Any:
        arguments = [word for text in overrides for word in ("-p", text)]
        declared = {"automatically_declare_parameters_from_overrides": True}
        node = ros.add(Node("holder", cli_args=["--ros-args", *arguments], **declared))
        tree = ParameterTree(node, root, live=("inner.limit",))
        tree.declare(defaults or {})
        tree.node = node  # type: ignore[attr-defined]
        return tree

    return build


def test_a_list_of_mappings_is_a_text(make: Make) -> None:
    sorts = {"sorts": [{"size": 3.0, "kind": "large"}, {"size": 1.0}]}
    expected = (Inner(size=3.0, kind="large"), Inner(size=1.0))
    assert make("name:=x", defaults=sorts).config().sorts == expected
    given = make("name:=x", 'sorts:="[{size: 3, kind: large}, {size: 1}]"')
    assert given.config().sorts == expected
    assert make("name:=x").config().sorts == ()


def test_descriptors_come_from_the_dataclass(make: Make) -> None:
    node = make("name:=x").node
    size = node.describe_parameter("inner.size")
    assert size.type == ParameterType.PARAMETER_DOUBLE
    assert size.description == "how large [m]"
    assert size.floating_point_range[0].to_value == 10.0
    assert "more than 0" in size.additional_constraints
    count = node.describe_parameter("count")
    assert (count.integer_range[0].from_value, count.integer_range[0].to_value) == (1, 5)
    assert "one of small, large" in node.describe_parameter("inner.kind").additional_constraints
    assert node.describe_parameter("scales").type == ParameterType.PARAMETER_DOUBLE_ARRAY
    assert node.describe_parameter("words").type == ParameterType.PARAMETER_STRING_ARRAY


def test_given_values_read_back(make: Make) -> None:
    tree = make(
        "name:=x",
        "inner.size:=3",  # a whole number for a number
        "inner.limit:=1.5",
        "inner.kind:=large",
        "count:=4",
        "flag:=true",
        "scales:=[1, 2, 3]",
        "words:=[b, c]",
        "corner:=[1.0, 2.0]",
        'mixed:="[[1, 2], [3, 4]]"',
        'boxes:="[[[0, 0], [1, 1]]]"',
    )
    assert tree.config() == Outer(
        name="x",
        inner=Inner(3.0, 1.5, "large"),
        count=4,
        flag=True,
        scales=(1.0, 2.0, 3.0),
        words=("b", "c"),
        corner=(1.0, 2.0),
        mixed=((1.0, 2.0), (3.0, 4.0)),
        boxes=(((0.0, 0.0), (1.0, 1.0)),),
    )
    assert tree.node.get_parameter("inner.size").value == 3.0


STDS = ("signal_std", "noise_std")


@dataclass(frozen=True)
class Several:
    readings: dict[str, Inner] = field(default_factory=dict)


def test_quantities_are_in_the_order_in_which_they_are_given(make: Make) -> None:
    given = ("readings.ph.size:=3", "readings.depth.kind:=large")
    config = make(*given, root=Several).config()
    assert list(config.readings.items()) == [("ph", Inner(3.0)), ("depth", Inner(kind="large"))]
    assert make(root=Several).config() == Several()
    more = make(*given, root=Several, defaults={"readings": {"heat": {}}}).config()
    assert list(more.readings) == ["heat", "ph", "depth"]


def test_an_optional_list_is_taken_back(ros: Ros) -> None:
    """The scenario knows the field; the parameters say that nobody does."""
    for nothing in ("[]", "[.nan]", "''", ".nan", "null", "~"):
        with case(nothing):
            keys = (f"belief.{key}:={nothing}" for key in ("length_scales", *STDS))
            node = idle(ros, "scenario:=town", *keys, "belief.mean_std:=.nan")
            belief = node.parameters.config().belief
            assert (belief.length_scales, belief.signal_std, belief.noise_std) == (None, None, None)
            assert not belief.scale_known
    node = idle(ros, "scenario:=town")
    nan = Parameter("belief.length_scales", value=array("d", [math.nan]))  # as a service sets it
    assert node.set_parameters([nan])[0].successful
    assert node.parameters.config().belief.length_scales is None


def test_every_problem_at_once(make: Make) -> None:
    tree = make(
        "inner.size:=20.0",
        "inner.kind:=smal",
        "count:=three",
        "scales:=[1.0, -2.0]",
        "inner.sice:=1.0",
        "flag:=1",
    )
    with pytest.raises(ConfigError) as error:
        tree.config()
    text = str(error.value)
    for part in (
        "parameters: ",
        "name: is required and missing",
        "inner.size: must be 10 or less [m], got 20",
        "Did you mean 'small'",
        "count: expected a whole number, got str 'three'",
        "scales[1]: must be more than 0 [m], got -2",
        "inner.sice: unknown parameter. Did you mean 'inner.size'",
        "flag: expected true or false, got int 1",
    ):
        assert part in text, part


# -- the node's own ------------------------------------------------------------------------------


def idle(ros: Ros, *overrides: str) -> Any:
    return sensing(ros, "autostart:=false", *overrides, given=())


def test_scenario_gives_the_defaults_and_parameters_override(ros: Ros) -> None:
    node = idle(ros, "scenario:=line", "policy.horizon:=3", "budget.readings:=7")
    config = node.parameters.config()
    assert config.map.count == 100
    assert config.belief.length_scales[0] == 1.0
    assert config.policy["name"] == "bal"
    assert (config.policy["horizon"], config.policy["alpha"]) == (3, 1.0)
    assert config.budget.readings == 7
    assert node.get_parameter("map.count").value == 100
    assert node.describe_parameter("policy.horizon").integer_range[0].from_value == 1
    assert node.describe_parameter("scenario").read_only


def test_no_program_is_named_over_parameters_while_the_node_runs(ros: Ros) -> None:
    mine = [sys.executable, str(CHOOSER)]
    node = idle(ros, "scenario:=line", "policy.name:=external", f"policy.command:={mine}")
    (result,) = node.set_parameters([Parameter("policy.command", value=["/bin/true"])])
    assert not result.successful
    assert "read-only" in result.reason
    assert node.parameters.mapping()["policy"]["command"] == mine


NAMES = ("probe.end", "belief.kernel", "map.outline", "map.obstacles")
"""Parameters of several types that any text may be a value of, as far as that goes."""


def test_no_wrong_value_is_replaced_by_a_default(ros: Ros) -> None:
    """Every parameter of the node at once with a value that it cannot have."""
    wrong: dict[str, str] = {}
    for leaf in leaves_of(ActiveSensingConfig, {"policy": policies.factory("bal")}):
        if leaf.name != "policy.name":
            text = leaf.kind == Parameter.Type.STRING or leaf.name in NAMES
            wrong[leaf.name] = "[true, false]" if text else "'no such value'"
    node = sensing(ros, *(f"{name}:={text}" for name, text in wrong.items()), given=())
    assert len(wrong) > 40
    with pytest.raises(ConfigError) as error:
        node.parameters.config(check=lambda mapping: build_policy(mapping["policy"]))
    named = {problem.split(":")[0].split("[")[0] for problem in error.value.problems}
    assert set(wrong) <= named
    wait_until(lambda: node.exit_code == REFUSED, "the node to give up for the same reasons")


def test_a_check_that_fails_refuses_and_the_node_lives(make: Make) -> None:
    tree = make("name:=x")

    def broken() -> bool:
        msg = "broken"
        raise RuntimeError(msg)

    tree.locked = broken
    (answer,) = tree.node.set_parameters([Parameter("count", value=3)])
    assert not answer.successful
    assert "cannot check count" in answer.reason


def test_points_with_heights_need_an_altitude(ros: Ros) -> None:
    points = ("map.kind:=points", "map.count:=8", "policy.name:=ie")
    sky = (*points, "map.low:=[0.0, 0.0, 2.0]", "map.high:=[50.0, 50.0, 30.0]")
    with pytest.raises(ConfigError, match=r"waypoint\.altitude"):
        idle(ros, *sky).configure()
    for given in (
        (*sky, "waypoint.altitude:=0.0"),
        (*points, "map.low:=[0.0, 0.0]", "map.high:=[9.0, 9.0]"),
    ):
        with case(given):
            node = idle(ros, *given)
            node.configure()
            assert node.mission.loop.topology.n == 8
