"""Validate output paths before a command starts."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["check_new_file"]


def check_new_file(option: str, path: Path, suffix: str, what: str = "") -> Path:
    """Return where a file goes, if it can go there and its name says what it is.

    Without the suffix a slip, such as the name of the table that is read, would cost a file.

    Args:
        option: that names the file, for the message.
        path: of the file.
        suffix: that it has to have, with the dot; in any case.
        what: is written, for the message.

    Raises:
        click.UsageError: another suffix, or no such folder.
    """
    if path.suffix.lower() != suffix:
        said = f" ({what})" if what else ""
        msg = f"{option}: expected a name that ends in {suffix}{said}, got {path.name!r}"
        raise click.UsageError(msg)
    if not path.absolute().parent.is_dir():
        msg = f"{option}: there is no folder {path.absolute().parent}"
        raise click.UsageError(msg)
    return path
