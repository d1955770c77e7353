"""The commands of ``gp-active-sensing``, each loaded when it is asked for."""

import click

from gp_active_sensing.errors import printable

__all__ = ["echo"]


def echo(text: object, *, err: bool = False) -> None:
    """Print text, with the control characters that a name or a file may hold escaped."""
    click.echo(printable(str(text)), err=err)
