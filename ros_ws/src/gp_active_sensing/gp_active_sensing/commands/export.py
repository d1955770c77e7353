"""The command ``export``: take the map of a run home."""

from __future__ import annotations

from pathlib import Path

import click

from gp_active_sensing.commands import echo

__all__ = ["export"]


@click.command()
@click.argument("run_dir", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "format",
    required=True,
    metavar="FORMAT",
    help="csv, geojson, asc (ESRI grid), pgm (map_server) or geotiff.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Default: the run's name, in this folder.",
)
@click.option("--stage", type=int, metavar="N", help="The map after stage N, not the last one.")
@click.option(
    "--layer",
    type=float,
    metavar="Z",
    help="Only the layer at this height in metres, upwards. Default: all layers.",
)
@click.option("--overwrite", is_flag=True, help="Write again what is there.")
def export(
    run_dir: Path,
    format: str,
    out: Path | None,
    stage: int | None,
    layer: float | None,
    overwrite: bool,
) -> None:
    """Write the map of the run directory RUN for other programs.

    Estimate, standard deviation, number and average of the readings of every place. The run may be
    a simulation, a mission or a replay, also one that is under way. asc and pgm write two
    files, FILE_mean and FILE_std; of a map in layers two of each layer, such as FILE_z-3m_mean.
    """
    from gp_active_sensing.export import export_map, format_of
    from gp_active_sensing.export.lattice import layer_at
    from gp_active_sensing.report.reconstruction import map_of_run

    suffix = format_of(format).suffix  # a wrong name is said before the run is read
    field = map_of_run(run_dir, stage)
    name = run_dir.resolve().name
    if stage is not None:
        name += f"-stage{stage}"
    if layer is not None:
        name += f"_{layer_at(field.topology, layer).word}"
        field = field.at_height(layer)
    path = out or Path(f"{name}{suffix}")
    for file in export_map(field, path, format, overwrite=overwrite):
        echo(str(file))
