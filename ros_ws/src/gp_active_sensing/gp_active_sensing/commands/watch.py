"""The command ``watch``: the live page of a run."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["watch"]


@click.command()
@click.argument("run_dir", metavar="RUN_DIR", type=click.Path(path_type=Path))
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 = all."
)
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), metavar="N", help="0 = any that is free."
)
@click.option("--private", is_flag=True, help="Show nothing to those who have not the token.")
@click.option(
    "--viewers", default=50, type=click.IntRange(1), metavar="N", help="Most at the same time."
)
@click.option(
    "--allow-host", "names", multiple=True, metavar="NAME", help="Another name of this server."
)
def watch(
    run_dir: Path, host: str, port: int, private: bool, viewers: int, names: tuple[str, ...]
) -> None:
    """Serve the page of the run in RUN_DIR while it goes on, and afterwards.

    RUN_DIR is only read; it need not exist yet. Ctrl-C ends it, and nothing of the run.
    """
    from gp_active_sensing.web.options import WatchOptions
    from gp_active_sensing.web.serve import serve

    options = WatchOptions(host=host, port=port, private=private, viewers=viewers, names=names)
    serve(run_dir.absolute(), options, click.echo)
