"""The command ``policies``: list the policies and their parameters."""

from __future__ import annotations

import json

import click

__all__ = ["policies"]


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with all parameters.")
def policies(names: tuple[str, ...], as_json: bool) -> None:
    """List the policies, or those of NAME with their parameters."""
    from gp_active_sensing.commands.reference import describe_policies
    from gp_active_sensing.planning import policies as known

    for name in names:
        known.factory(name)  # says what there is, where it is none
    found = [policy for policy in describe_policies() if not names or policy["name"] in names]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for policy in found:
        click.secho(policy["name"], bold=True, nl=False)
        click.echo(f"  {policy['help']}")
        if not names:
            continue
        for parameter in policy["parameters"]:
            unit = f" {parameter['unit']}" if parameter["unit"] else ""
            bounds = f" ({parameter['bounds']})" if parameter["bounds"] else ""
            default = json.dumps(parameter["default"], ensure_ascii=False)
            click.echo(f"    {parameter['name']:<14} {default}{unit}{bounds}  {parameter['help']}")
    if not names:
        click.echo("Parameters: gp-active-sensing policies NAME")
