"""Configuration as frozen dataclasses; the fields also define ROS parameters.

A field made with `param` has a default, a unit, bounds and a help text. `from_mapping` builds the
dataclass from plain data and reports all problems at once, each with the path of its key.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any, TypeVar, cast

from gp_active_sensing.errors import MOST_SHOWN, ConfigError, brief_repr, suggest

logger = logging.getLogger(__name__)

C = TypeVar("C")
_EXPONENT = re.compile(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+")


@dataclass(frozen=True)
class Param:
    """Description of a configuration field, without type and default.

    Args:
        help: help text of one sentence.
        unit: unit of the value; "" = no unit.
        low, high: inclusive bounds of a number, or of every entry of a list.
        above: exclusive lower bound.
        choices: allowed words.
        min_items: smallest number of entries of a list.
    """

    help: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    choices: tuple[str, ...] | None = None
    min_items: int = 0


def param(
    default: Any = MISSING,
    *,
    help: str,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: Sequence[str] | None = None,
    min_items: int = 0,
) -> Any:
    """Declare a configuration field. A field without a default is required."""
    info = Param(help, unit, low, high, above, tuple(choices) if choices else None, min_items)
    if isinstance(default, list | dict):
        return dataclasses.field(default_factory=default.copy, metadata={"param": info})
    return dataclasses.field(default=default, metadata={"param": info})


def param_of(field: dataclasses.Field[Any]) -> Param:
    """Return the description of a configuration field."""
    return cast(Param, field.metadata.get("param", Param()))


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a field; None = no default."""
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else None


def declared(cls: type) -> Iterator[tuple[dataclasses.Field[Any], Any]]:
    """Yield the fields of a configuration class and of its ``VARIANTS``, each with its type."""
    seen: set[str] = set()
    for kind in (cls, *getattr(cls, "VARIANTS", ())):
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            if field.init and field.name not in seen:
                seen.add(field.name)
                yield field, hints[field.name]


def mapped(hint: Any) -> type | None:
    """Return the dataclass `T` of a field of type ``dict[str, T]``; None for other fields."""
    of = typing.get_args(hint)[1:] if typing.get_origin(hint) is dict else ()
    return cast(type, of[0]) if of and dataclasses.is_dataclass(of[0]) else None


def removed_hint(cls: type, key: str) -> str:
    """Return the hint for a removed dotted key of a configuration class; "" = no hint."""
    first, _, rest = key.partition(".")
    if hint := getattr(cls, "REMOVED", {}).get(first):
        return str(hint)
    inner = typing.get_type_hints(cls).get(first) if rest else None
    return removed_hint(inner, rest) if isinstance(inner, type) else ""


def is_accepted(cls: type, key: str, value: Any) -> bool:
    """Return True if the removed dotted key is still accepted with this value (``WERE``)."""
    first, _, rest = key.partition(".")
    if not rest:
        were = getattr(cls, "WERE", {})
        return first in were and bool(were[first] == value)
    inner = typing.get_type_hints(cls).get(first)
    return isinstance(inner, type) and is_accepted(inner, rest, value)


def from_mapping(cls: type[C], mapping: Any, *, path: str = "", source: str = "") -> C:
    """Build a configuration dataclass from plain data (YAML or ROS parameters).

    If a class has ``VARIANTS``, its classmethod ``variant`` chooses one of these classes by the
    given keys. ``REMOVED`` has a hint for each removed key. A removed key is accepted silently if
    its value equals ``WERE[key]``. A removed key in ``IGNORED`` is accepted with a warning. Error
    messages contain `path`, the dotted path of `mapping` in the whole data, and the file `source`.

    Raises:
        ConfigError: keys or values are wrong; the error lists all problems with the keys' paths.
    """
    problems: list[str] = []
    built = _build(cls, mapping, path, problems)
    if problems:
        raise ConfigError(problems, source=source)
    return cast(C, built)


def to_mapping(config: Any) -> dict[str, Any]:
    """Return a configuration as plain data that `from_mapping` accepts."""
    return {field.name: plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def plain(value: Any) -> Any:
    """Return a configuration value as plain data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_mapping(value)
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    return value


def _build(cls: type, mapping: Any, path: str, problems: list[str]) -> Any:
    if mapping is None:
        mapping = {}
    if not isinstance(mapping, Mapping):
        problems.append(f"{path or 'top level'}: expected a mapping, got {_shown(mapping)}")
        return None
    dot = f"{path}." if path else ""
    chosen = True
    if getattr(cls, "VARIANTS", ()):
        try:
            cls, mapping = cls.variant(mapping)  # type: ignore[attr-defined]
        except ConfigError as error:
            problems.extend(f"{dot}{problem}" for problem in error.problems)
            chosen = False
    fields = {field.name: (field, hint) for field, hint in declared(cls)}
    unknown = [
        f"{key:.60}" if isinstance(key, str) else brief_repr(key)
        for key in mapping
        if key not in fields
    ]
    unknown = [key for key in unknown if not is_accepted(cls, key, mapping.get(key))]
    for key in unknown[:MOST_SHOWN]:
        if removed := removed_hint(cls, key):
            if key in getattr(cls, "IGNORED", ()):
                logger.warning("%s%s: %s", dot, key, removed)
            else:
                problems.append(f"{dot}{key}: {removed}")
            continue
        known = f"{suggest(key, fields)} Known: {', '.join(sorted(fields)) or 'none'}"
        problems.append(f"{dot}{key}: unknown key.{known}")
    if len(unknown) > MOST_SHOWN:
        problems.append(f"{path or 'top level'}: {len(unknown) - MOST_SHOWN} more unknown keys")
    values: dict[str, Any] = {}
    before = len(problems)
    for name, (field, hint) in fields.items():
        info = param_of(field)
        if name in mapping:
            values[name] = _convert(hint, mapping[name], f"{dot}{name}", info, problems)
        elif chosen and field.default is MISSING and field.default_factory is MISSING:
            help_ = f" ({info.help})" if info.help else ""
            problems.append(f"{dot}{name}: is required and missing{help_}")
    if len(problems) > before or not chosen:
        return None
    try:
        return cls(**values)
    except ConfigError as error:
        problems.extend(f"{dot}{problem}" for problem in error.problems)
    except (TypeError, ValueError) as error:
        problems.append(f"{path or 'top level'}: {error}")
    return None


def _convert(hint: Any, value: Any, path: str, info: Param, problems: list[str]) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        options = typing.get_args(hint)
        if value is None and type(None) in options:
            return None
        inner = [o for o in options if o is not type(None)]
        if len(inner) == 1:
            return _convert(inner[0], value, path, info, problems)
        if isinstance(value, str) and str in inner and any(map(_holds_lists, inner)):
            value = _list_from_text(value)
        if isinstance(value, str) and str in inner:
            # For this type "5e2" may be a name; for other types YAML 1.1 reads a number as text.
            return _convert_scalar(str, value, path, info, problems)
        trials: list[str] = []
        for option in inner:
            attempt: list[str] = []
            converted = _convert(option, value, path, info, attempt)
            if not attempt:
                return converted
            trials.extend(attempt)
        # An option for lists is the last in the type.
        problems.append(trials[-1] if isinstance(value, list) else trials[0])
        return None
    if dataclasses.is_dataclass(hint):
        return _build(cast(type, hint), value, path, problems)
    if hint is Any:
        return value
    if origin in (tuple, list):
        return _convert_sequence(hint, value, path, info, problems)
    if origin in (dict, Mapping) or hint in (dict, Mapping):
        if not isinstance(value, Mapping):
            problems.append(f"{path}: expected a mapping, got {_shown(value)}")
            return None
        found, kind = {str(k): v for k, v in value.items()}, mapped(hint)
        if kind is None:
            return found
        return {
            name: _build(kind, each, f"{path}.{name}", problems) for name, each in found.items()
        }
    return _convert_scalar(hint, value, path, info, problems)


def _convert_sequence(hint: Any, value: Any, path: str, info: Param, problems: list[str]) -> Any:
    args = typing.get_args(hint)
    if isinstance(value, str) and any(map(_holds_lists, args)):
        value = _list_from_text(value)
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        problems.append(f"{path}: expected a list, got {_shown(value)}")
        return None
    if len(value) < info.min_items:
        problems.append(f"{path}: expected at least {info.min_items} entries, got {len(value)}")
        return None
    fixed = typing.get_origin(hint) is tuple and Ellipsis not in args
    if fixed and len(args) != len(value):
        problems.append(f"{path}: expected {len(args)} entries, got {len(value)}")
        return None
    inner = args if fixed else [args[0] if args else Any] * len(value)
    items = [
        _convert(kind, item, f"{path}[{i}]", info, problems)
        for i, (kind, item) in enumerate(zip(inner, value, strict=True))
    ]
    return tuple(items) if typing.get_origin(hint) is tuple else items


def _holds_lists(hint: Any) -> bool:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(map(_holds_lists, typing.get_args(hint)))
    return typing.get_origin(hint) in (tuple, list) or dataclasses.is_dataclass(hint)


def _list_from_text(text: str) -> Any:
    # ROS parameter files have no nested lists and no lists of mappings: these are JSON text.
    from gp_active_sensing.util.yaml_files import parse_yaml

    try:
        return parse_yaml(text) if text.lstrip().startswith("[") else text
    except ConfigError:
        return text


def _convert_scalar(hint: Any, value: Any, path: str, info: Param, problems: list[str]) -> Any:
    unit = f" [{info.unit}]" if info.unit else ""
    if hint is bool:
        if not isinstance(value, bool):
            problems.append(f"{path}: expected true or false, got {_shown(value)}")
        return value
    if hint is str:
        if not isinstance(value, str):
            problems.append(f"{path}: expected text, got {_shown(value)} (quote it in YAML)")
        elif info.choices is not None and value not in info.choices:
            problems.append(
                f"{path}: expected one of {', '.join(info.choices)}, got {brief_repr(value)}."
                f"{suggest(value, info.choices)}"
            )
        return value
    if hint in (int, float):
        # YAML 1.1 reads 1e-3 (without a decimal point) as text.
        if isinstance(value, str) and _EXPONENT.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            word = "a whole number" if hint is int else "a number"
            problems.append(f"{path}: expected {word}{unit}, got {_shown(value)}")
            return value
        try:
            finite = math.isfinite(value)
        except OverflowError:  # an integer too large for a float
            finite, value = False, math.inf if value > 0 else -math.inf
        if not finite:
            problems.append(f"{path}: expected a finite number{unit}, got {value:g}")
            return value
        if hint is int and value != int(value):
            problems.append(f"{path}: expected a whole number{unit}, got {brief_repr(value)}")
            return value
        if info.low is not None and value < info.low:
            problems.append(f"{path}: must be {info.low:g} or more{unit}, got {value:g}")
        if info.above is not None and value <= info.above:
            problems.append(f"{path}: must be more than {info.above:g}{unit}, got {value:g}")
        if info.high is not None and value > info.high:
            problems.append(f"{path}: must be {info.high:g} or less{unit}, got {value:g}")
        return hint(value)
    problems.append(f"{path}: has a type that cannot be configured ({hint!r})")
    return value


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {brief_repr(value)}"
