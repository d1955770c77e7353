"""The command ``gp-active-sensing delay``."""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["delay"]


@click.command()
@click.argument("run_dir", metavar="RUN_DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the estimates as JSON.")
def delay(run_dir: Path, as_json: bool) -> None:
    """Say by how much the stamps of the readings of the mission in RUN_DIR are too late.

    Readings fit a field better where the probe was when they were taken. Nothing is found where it
    drove straight on at one speed, or stood whenever it read.
    """
    from gp_active_sensing.mission.delays import advice, as_mapping
    from gp_active_sensing.mission.ingestion.delay_estimate import ENOUGH
    from gp_active_sensing.replay.delay import delays_in

    found = delays_in(run_dir)
    if as_json:
        watches = found.watches.items()
        estimates = {n: w.estimate and as_mapping(w.estimate, found.delay) for n, w in watches}
        click.echo(json.dumps(estimates))
        return
    for name, watch in found.watches.items():
        whose, samples = f"{name}: " if name else "", watch.evidence.samples
        if watch.estimate is None:
            few = f"; it takes {ENOUGH} on the move, with a position each" * (samples < ENOUGH)
            click.echo(f"{whose}no delay found in {samples} readings{few}")
        else:
            about = f"± {watch.estimate.error:.2f} s, evidence {watch.estimate.evidence:.0f} nat"
            click.echo(f"{whose}{advice(watch.estimate, found.delay)} ({about})")
    if found.left_out:
        click.echo(found.left_out)
