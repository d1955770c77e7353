"""Command line program ``gp-active-sensing``.

Exit codes: 0 = done, 1 = failed with one message, 2 = wrong usage. Heavy modules are imported only
by the command that needs them.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import click

from gp_active_sensing._version import __version__
from gp_active_sensing.errors import ActiveSensingError, one_line, printable
from gp_active_sensing.util.lazy import install_command
from gp_active_sensing.util.process import one_blas_thread

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_MODULES = {
    "doctor": "doctor",
    "export": "export",
    "init": "init",
    "maps": "maps",
    "policies": "reference",
    "replay": "run",
    "report": "run",
    "run": "run",
    "watch": "run",
}
"""Module of each command, imported when the command is first used."""
GROUP = "gp_active_sensing.commands"
"""Entry-point group for the commands of other packages."""
ELSEWHERE = {
    "experiment": "gp_active_sensing_bench",
    "learn": "gp_active_sensing_learning",
    "model": "gp_active_sensing_learning",
}
"""Optional package of each command that this package does not provide."""
REMOVED = {
    "delay": "a mission finds the delay of its sensor itself: see `delays` in its summary.json, or "
    "replay its bag"
}
"""Hints for removed commands."""


def _added() -> dict[str, EntryPoint]:
    from importlib import metadata

    try:
        found = list(metadata.entry_points(group=GROUP))
    except Exception as error:  # damaged distribution, which `doctor` reports
        logging.getLogger(__name__).debug("entry points cannot be read: %r", error)
        found = []
    return {entry.name: entry for entry in found if entry.name not in _MODULES}


def _broken(entry: EntryPoint, error: Exception) -> click.Command:
    msg = f"the command `{entry.name}` ({entry.value}) cannot be used: {error}; install it again"

    def fail() -> None:
        raise click.ClickException(msg)

    return click.Command(entry.name, callback=fail, help=msg, context_settings=_ANYTHING)


_ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True}


class _Group(click.Group):
    """Command group that reports an error as one message with exit code 1, except with --debug."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_MODULES, *_added()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _MODULES:
            module = import_module(f"gp_active_sensing.commands.{_MODULES[cmd_name]}")
            return cast("click.Command", getattr(module, cmd_name))
        entry = _added().get(cmd_name)
        if entry is not None:
            try:
                return cast("click.Command", entry.load())
            except Exception as error:  # any error while another package is imported
                return _broken(entry, error)
        if cmd_name in ELSEWHERE:
            how = install_command(package=ELSEWHERE[cmd_name])
            msg = f"the command `{cmd_name}` is in a package of its own: {how}"
            raise click.ClickException(msg)
        if cmd_name in REMOVED:
            msg = f"the command `{cmd_name}` is removed: {REMOVED[cmd_name]}"
            raise click.ClickException(msg)
        return None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            raise click.ClickException(_message_of(error)) from error


def _message_of(error: Exception) -> str:
    if isinstance(error, ActiveSensingError):
        return printable(str(error))
    if isinstance(error, OSError):
        name = str(error.filename or "")
        shown = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}… ({len(name)} characters)"
        return one_line(f"{shown}: {error.strerror or error}" if name else str(error))
    return (
        f"unexpected {type(error).__name__}: {printable(str(error))}\n"
        "This is a defect; `gp-active-sensing --debug …` shows where it happened"
    )


_LONGEST = 80
"""Largest number of characters of a file name in a message."""


class _ClickHandler(logging.Handler):
    """Log handler that writes to the current stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(printable(f"{record.levelname.lower()}: {record.getMessage()}"), err=True)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gp-active-sensing")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("-v", "--verbose", is_flag=True, help="Show more log messages.")
def cli(debug: bool, verbose: bool) -> None:
    """Choose where a robot measures next, with Gaussian processes."""
    level = logging.DEBUG if debug else logging.INFO if verbose else logging.WARNING
    for package in ("gp_active_sensing", "gp_active_sensing_learning", "gp_active_sensing_bench"):
        root = logging.getLogger(package)
        root.handlers = [_ClickHandler()]
        root.setLevel(level)


# Click suggests similar names; `get_command` loads the commands.
cli.commands = cast("dict[str, click.Command]", dict.fromkeys((*_MODULES, *ELSEWHERE)))


def main() -> None:
    """Run the command line program."""
    one_blas_thread()
    cli(prog_name="gp-active-sensing")


if __name__ == "__main__":
    main()
