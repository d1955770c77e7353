"""Configuration files and overrides: YAML in, plain data out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from gp_active_sensing.errors import ConfigError

__all__ = ["apply_overrides", "load_yaml"]


class _Loader(yaml.SafeLoader):
    """Safe (no code, no custom tags), and strict: a key given twice is a mistake."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    line = key.start_mark.line + 1
                    msg = f"key {key.value!r} is given twice, the second time in line {line}"
                    raise yaml.YAMLError(msg)
                seen.add(key.value)
        return cast("dict[Any, Any]", super().construct_mapping(node, deep=deep))


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping safely (no code, no custom tags).

    Raises:
        ConfigError: not readable, not YAML, or not a mapping at the top.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot be read: {error}"
        raise ConfigError(msg, source=str(path)) from error
    try:
        data = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-45
        msg = f"is not valid YAML: {' '.join(str(error).split())}"
        raise ConfigError(msg, source=str(path)) from error
    if not isinstance(data, dict):
        msg = f"expected a mapping at the top, got {type(data).__name__}"
        raise ConfigError(msg, source=str(path))
    return cast("dict[str, Any]", data)


def apply_overrides(mapping: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return a copy of nested data with ``a.b=value`` overrides applied; values are YAML.

    Raises:
        ConfigError: an override without '=' or through something that is not a mapping.
    """
    result: dict[str, Any] = _copy(mapping)
    problems: list[str] = []
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            problems.append(f"override {override!r}: expected KEY=VALUE, such as policy.horizon=3")
            continue
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError):  # ValueError: a date such as 2024-13-45
            problems.append(f"override {override!r}: {text!r} is not a YAML value")
            continue
        target = result
        *parents, last = key.strip().split(".")
        for parent in parents:
            inner = target.setdefault(parent, {})
            if not isinstance(inner, dict):
                problems.append(f"override {override!r}: {parent!r} is a value, not a section")
                break
            target = inner
        else:
            target[last] = value
    if problems:
        raise ConfigError(problems)
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _copy(v) for k, v in value.items()}
    return value
