"""Convert configuration fields to ROS parameters: types, descriptors and values."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import math
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import yaml
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.parameter import Parameter

from gp_active_sensing.config import (
    Param,
    declared,
    default_of,
    from_mapping,
    mapped,
    param,
    param_of,
)
from gp_active_sensing.errors import ConfigError
from gp_active_sensing.util.yaml_files import parse_yaml

READ_ONLY = frozenset({"scenario", "policy.name", "policy.command", "autostart"})
"""Parameters that can be set only at the start; they select other parameters or programs."""

_NULLS = ("null", "~")
"""YAML words for None that rcl reads as text."""
_SEQUENCES = (array.array, list, tuple)
_KINDS: dict[Any, Parameter.Type] = {
    bool: Parameter.Type.BOOL,
    int: Parameter.Type.INTEGER,
    float: Parameter.Type.DOUBLE,
    str: Parameter.Type.STRING,
}
_ARRAYS = {hint: Parameter.Type[f"{kind.name}_ARRAY"] for hint, kind in _KINDS.items()}
_NUMBERS: dict[Any, type] = {
    (kinds[a], kinds[b]): b for kinds in (_KINDS, _ARRAYS) for a, b in ((int, float), (float, int))
}
"""Python type to which a number is converted, for each pair (given type, parameter's type)."""


@dataclass(frozen=True)
class Leaf:
    """Configuration field as a ROS parameter.

    Args:
        name: dotted name.
        hint: type of the field.
        info: unit, bounds and help.
        default: default value of the dataclass; None = no default.
    """

    name: str
    hint: Any
    info: Param
    default: Any

    @property
    def optional(self) -> bool:
        """True if None is a valid value of the field."""
        return type(None) in self._options

    @property
    def _options(self) -> tuple[Any, ...]:
        union = typing.get_origin(self.hint) in (typing.Union, types.UnionType)
        return typing.get_args(self.hint) if union else (self.hint,)

    @property
    def _inner(self) -> tuple[Any, ...]:
        return tuple(option for option in self._options if option is not type(None))

    @property
    def kind(self) -> Parameter.Type | None:
        """ROS type of the parameter; None = values of several types are allowed."""
        if len(self._inner) != 1:
            return None
        (hint,) = self._inner
        if hint in _KINDS:
            return _KINDS[hint]
        if typing.get_origin(hint) in (tuple, list):
            items = {a for a in typing.get_args(hint) if a is not Ellipsis}
            if len(items) == 1:
                return _ARRAYS.get(items.pop())
        return None

    def descriptor(self) -> ParameterDescriptor:
        """Return the ROS descriptor with range, unit and help."""
        info = self.info
        unit = f" [{info.unit}]" if info.unit else ""
        limits = []
        if info.choices:
            limits.append(f"one of {', '.join(info.choices)}")
        if info.low is not None:
            limits.append(f"{info.low:g} or more")
        if info.above is not None:
            limits.append(f"more than {info.above:g}")
        if info.high is not None:
            limits.append(f"{info.high:g} or less")
        if info.min_items:
            limits.append(f"at least {info.min_items} entries")
        if self.kind is None:
            limits.append("a number, a list of numbers, or a text with the value in YAML")
        if self.optional:
            limits.append("may be left unset")
        descriptor = ParameterDescriptor(
            name=self.name,
            description=f"{info.help}{unit}",
            additional_constraints="; ".join(limits),
            read_only=self.name in READ_ONLY,
            dynamic_typing=self.kind is None,
        )
        # An optional number may be NaN, which is outside every range.
        bounded = any(v is not None for v in (info.low, info.above, info.high))
        if bounded and not self.optional:
            self._add_range(descriptor)
        return descriptor

    def _add_range(self, descriptor: ParameterDescriptor) -> None:
        low = self.info.low if self.info.low is not None else self.info.above
        high = self.info.high
        if self.kind == Parameter.Type.DOUBLE:
            largest = sys.float_info.max
            descriptor.floating_point_range = [
                FloatingPointRange(
                    from_value=-largest if low is None else float(low),
                    to_value=largest if high is None else float(high),
                )
            ]
        elif self.kind == Parameter.Type.INTEGER:
            descriptor.integer_range = [
                IntegerRange(
                    from_value=-(2**63) if low is None else math.ceil(low),
                    to_value=2**63 - 1 if high is None else math.floor(high),
                    step=1,
                )
            ]

    def encode(self, value: Any) -> Any:
        """Convert a configuration value to a parameter's value; None = not set."""
        data = plain(value)
        if data is None or data == []:
            return None  # ROS has no type for an empty list
        items = data if isinstance(data, list) else [data]
        if any(isinstance(item, list | dict) for item in items):
            return yaml.safe_dump(data, default_flow_style=True).strip()
        if isinstance(data, list):
            as_floats = self.kind in (Parameter.Type.DOUBLE_ARRAY, None)
            return [_as_float(item) for item in data] if as_floats else data
        if self.kind == Parameter.Type.INTEGER and isinstance(data, float) and data.is_integer():
            return int(data)
        return _as_float(data) if self.kind in (Parameter.Type.DOUBLE, None) else data

    def decode(self, value: Any) -> Any:
        """Convert a parameter's value to plain configuration data."""
        data = plain(value)
        if self.optional:
            texts = ("",) if str in self._inner else ("", *_NULLS)
            items = data if isinstance(data, list) else [data]
            if data in texts or all(_is_nan(item) for item in items):
                return None
        if isinstance(data, str) and self.kind is None and str not in self._inner:
            with contextlib.suppress(ConfigError):
                return parse_yaml(data)
        return data

    def typed(self, parameter: Parameter) -> Parameter:
        """Convert the numbers of a parameter to the declared type, if the conversion is exact.

        Without this conversion ROS rejects 5000 for a float and 5000.0 for an integer.
        """
        kind, value = _NUMBERS.get((parameter.type_, self.kind)), parameter.value
        if kind is None:
            return parameter
        several = self.kind in _ARRAYS.values()
        value = [_same(kind, each) for each in value] if several else _same(kind, value)
        try:
            return Parameter(parameter.name, self.kind, value)
        except ValueError:  # ROS rejects a list with an inexact number
            return parameter

    def check(self, value: Any) -> str:
        """Return why a value of the parameter is invalid; "" = the value is valid."""
        last = self.name.rsplit(".", maxsplit=1)[-1]
        alone = dataclasses.make_dataclass(
            "Alone", [(last, self.hint, dataclasses.field(metadata={"param": self.info}))]
        )
        path = self.name.rpartition(".")[0]
        try:
            from_mapping(alone, {last: self.decode(value)}, path=path)
        except ValueError as error:
            return str(error)
        return ""


def leaves_of(
    root: type,
    sections: Mapping[str, type | None],
    names: Mapping[str, Iterable[str]] = MappingProxyType({}),
    prefix: str = "",
) -> Iterator[Leaf]:
    """Yield the parameters of a configuration dataclass.

    Args:
        root: the dataclass.
        sections: for each field whose parameters depend on a choice (``policy``): the dataclass of
            these parameters; None = the choice is unknown.
        names: for each field with named entries (``readings``): the names.
        prefix: prefix of the parameters' names.
    """
    for field, hint in declared(root):
        name = f"{prefix}{field.name}"
        if dataclasses.is_dataclass(hint):
            yield from leaves_of(typing.cast(type, hint), sections, prefix=f"{name}.")
        elif (of := mapped(hint)) is not None:
            for each in names.get(name, ()):
                yield from leaves_of(of, {}, prefix=f"{name}.{each}.")
        elif name in sections:
            help_ = param_of(field).help
            yield Leaf(f"{name}.name", str, param_of(param("", help=help_)), None)
            if (inner := sections[name]) is not None:
                yield from leaves_of(inner, {}, prefix=f"{name}.")
        else:
            yield Leaf(name, hint, param_of(field), default_of(field))


def _same(kind: type, value: float) -> Any:
    """Convert a number to another type; return it unchanged if the conversion is not exact.

    Integers beyond the 64 bits of ROS also stay unchanged.
    """
    if not math.isfinite(value) or not -(2.0**63) <= value < 2.0**63:
        return value
    return kind(value) if kind(value) == value else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def plain(value: Any) -> Any:
    """Return a value with lists in place of tuples and arrays."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, _SEQUENCES) else value


def _as_float(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole else value
