"""Command ``policies``, and tables of configuration keys."""

from __future__ import annotations

import dataclasses
import inspect
import json
import logging
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import click

from gp_active_sensing.config import Param, declared, default_of, param_of, plain


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with all parameters.")
def policies(names: tuple[str, ...], as_json: bool) -> None:
    """List all policies. With names, show their parameters."""
    from gp_active_sensing.planning import policies as known

    for name in names:
        known.factory(name)  # raises UnknownNameError
    found = [policy for policy in describe_policies() if not names or policy["name"] in names]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    if not names:
        _list_by_purpose(found)
        return
    for policy in found:
        click.secho(policy["name"], bold=True, nl=False)
        click.echo(f"  {_plain(policy['help'])}")
        for parameter in policy["parameters"]:
            unit = f" {parameter['unit']}" if parameter["unit"] else ""
            bounds = f" ({parameter['bounds']})" if parameter["bounds"] else ""
            default = json.dumps(parameter["default"], ensure_ascii=False)
            click.echo(
                f"    {parameter['name']:<14} {default}{unit}{bounds}  {_plain(parameter['help'])}"
            )


_PURPOSES = {
    "Map the whole area": "tour bal ie ite integrated_variance mutual_information max_entropy apgd",
    "Find the highest or lowest value": "gp_ucb ei pi est thompson",
    "Find the highest or lowest value with several robots": "gp_bucb b_est lp_ucb ucb_pe "
    "ucb_dpp_max ucb_dpp_sample est_dpp_max est_dpp_sample",
    "Find the highest or lowest value of a field that changes": "tv_gp_ucb sw_gp_ucb r_gp_ucb "
    "w_gp_ucb sparq_gp_ucb",
    "Compare with a simple policy": "lawnmower spread random variance_only mean_only",
}
"""Names of the built-in policies by their purpose; the list shows all other policies last."""


def _list_by_purpose(found: list[dict[str, Any]]) -> None:
    from gp_active_sensing.planning import DEFAULT_POLICY

    left = {policy["name"]: _CITED.sub("", _plain(policy["help"])) for policy in found}
    left["ucb_pe"] = "Another name of ucb_dpp_max."
    for purpose, names in {**_PURPOSES, "Other policies": " ".join(left)}.items():
        shown = {name: left.pop(name) for name in names.split() if name in left}
        if shown:
            click.echo(f"{purpose}:")
        for name, text in shown.items():
            click.secho(f"  {name:<20}", bold=True, nl=False)
            default = " (default)" if name == DEFAULT_POLICY["name"] else ""
            click.echo(f" {text}{default}")
    click.echo("Parameters of a policy: gp-active-sensing policies NAME")


_CITED = re.compile(r" \[[A-Z]\w+\d{4}[^]]*\]\.?$")
"""Citation at the end of a line."""


def _plain(text: str) -> str:
    return re.sub(r":\w+:(?=`)|`", "", text)


logger = logging.getLogger(__name__)


def describe_policies() -> list[dict[str, Any]]:
    """Return name, one-line help and parameters of every policy that can be imported."""
    from gp_active_sensing.planning import policies

    origins = policies.plugins()
    found = []
    for name in policies.names():
        try:
            factory: Any = policies.factory(name)
            parameters = list(describe_fields(factory))
        except Exception as error:
            if name not in origins:
                raise
            logger.warning("%s", error)
            continue
        help_line = (inspect.getdoc(factory) or "").split("\n")[0]
        if name in origins:
            help_line = f"{help_line} [{origins[name]}]"
        found.append({"name": name, "help": help_line, "parameters": parameters})
    return found


def describe_fields(cls: type) -> Iterator[dict[str, Any]]:
    """Yield name, type, default, unit, bounds and help of each configuration field."""
    for field, hint in declared(cls):
        info = param_of(field)
        yield {
            "name": field.name,
            "type": _type_name(hint),
            "default": plain(default_of(field)),
            "required": field.default is field.default_factory is dataclasses.MISSING,
            "unit": info.unit,
            "bounds": _bounds(info),
            "help": info.help,
        }


def _bounds(info: Param) -> str:
    parts = []
    if info.choices is not None:
        parts.append(", ".join(info.choices))
    if info.low is not None:
        parts.append(f"≥ {info.low:g}")
    if info.above is not None:
        parts.append(f"> {info.above:g}")
    if info.high is not None:
        parts.append(f"≤ {info.high:g}")
    if info.min_items:
        parts.append(f"at least {info.min_items}")
    return "; ".join(parts)


def _type_name(hint: Any) -> str:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type_name(option) for option in typing.get_args(hint))
    if origin in (tuple, list):
        inner = [a for a in typing.get_args(hint) if a is not Ellipsis]
        return f"list of {_type_name(inner[0])}" if inner else "list"
    if origin in (dict, Mapping):
        return "mapping"
    if dataclasses.is_dataclass(hint):
        return "mapping"
    words = {int: "whole number", float: "number", str: "text", bool: "true/false"}
    return "null" if hint is type(None) else words.get(hint, getattr(hint, "__name__", str(hint)))
