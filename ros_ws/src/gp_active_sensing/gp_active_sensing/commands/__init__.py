"""Commands of ``gp-active-sensing``, each loaded on use."""

import click

from gp_active_sensing.errors import printable

__all__ = ["echo"]


def echo(text: object, *, err: bool = False) -> None:
    """Print text with escaped control characters."""
    click.echo(printable(str(text)), err=err)
