"""Commands of ``gp-active-sensing``; each module is imported when its command runs."""

import click

from gp_active_sensing.errors import printable

__all__ = ["echo"]


def echo(text: object, *, err: bool = False) -> None:
    """Print text; escape control characters."""
    click.echo(printable(str(text)), err=err)
