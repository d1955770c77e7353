"""The command ``gp-active-sensing learn``."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gp_active_sensing.commands import echo
from gp_active_sensing_learning.commands.kernels import (
    KERNEL_OPTIONS,
    KernelOptions,
    distance,
    factor,
    kernel_options,
    learn_kernels,
)

if TYPE_CHECKING:
    from gp_active_sensing_learning import DataRequest, HyperParameterEstimate

_LENGTHS_ONLY = ("way", "per_feature", "starts", "subset", "noise")
"""Names of the options that ``--kernels`` excludes."""


def _deviation(context: click.Context, parameter: click.Parameter, value: float | None) -> Any:
    if value is not None and not (math.isfinite(value) and value > 0.0):
        msg = f"expected a finite number above 0, got {value:g}"
        raise click.BadParameter(msg)
    return value


@click.command()
@click.argument("data", metavar="DATA")
@click.option(
    "--scenario", metavar="NAME", help="Scenario with map and belief: a shipped one or a YAML file."
)
@click.option("--map", "map_file", metavar="FILE", help="Road map, in place of a scenario.")
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Any key of the scenario, such as belief.kernel=graph_matern32 or "
    "map.features=[relational]. May be repeated.",
)
@click.option("--place", default="", metavar="COLUMN", help="Column with the names of the places.")
@click.option(
    "--value",
    default="",
    metavar="COLUMN",
    help="Column with the values. For a run: name of the quantity.",
)
@click.option(
    "--scale",
    default=1.0,
    callback=factor,
    metavar="X",
    help="Factor on the values.",
    show_default=True,
)
@click.option(
    "--snap",
    type=float,
    callback=distance,
    metavar="M",
    help="Largest distance from (x, y) of a row to its place. Default: 50.",
)
@click.option(
    "--lambda",
    "way",
    type=click.Choice(("grid", "paper", "point")),
    default="grid",
    show_default=True,
    help="Candidate length-scales from the estimate ℓ*: grid = log-spaced around ℓ*; paper = the "
    "multiples 1, 4, 6, 8, 10, 12 and 14 of ℓ*; point = only ℓ*.",
)
@click.option("--per-feature", is_flag=True, help="Learn a length-scale for each feature.")
@click.option(
    "--starts",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Number of starting points of the search.",
)
@click.option(
    "--subset",
    type=click.IntRange(min=8),
    default=1000,
    show_default=True,
    help="Largest number of places that are used.",
)
@click.option(
    "--noise",
    type=float,
    callback=_deviation,
    metavar="STD",
    help="Standard deviation of the sensor's noise, if it is known.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of every random draw.")
@kernel_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write: YAML, or with --kernels the model, .npz",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON.")
def learn(
    data: str,
    scenario: str | None,
    map_file: str | None,
    overrides: tuple[str, ...],
    place: str,
    value: str,
    scale: float,
    snap: float | None,
    way: str,
    per_feature: bool,
    starts: int,
    subset: int,
    noise: float | None,
    seed: int,
    out: Path | None,
    as_json: bool,
    **kernel_words: Any,
) -> None:
    """Learn length-scales, or kernels, from earlier readings.

    The command prints a section `belief:` with length-scales, signal and noise. If places were read
    several times, or --noise is given, the command also learns the part of the variation that is
    not correlated between places.

    With --kernels the command learns a belief over kernels, and writes a model for the key
    belief.model. The commands `model …` show this model and predict with it.

    DATA is a run directory, a scenario (its field is read), or a CSV file. Each row of the CSV file
    has a value and the name of a place, or its x and y; --scenario or --map gives the map. With
    --kernels, DATA may also be a bag that was recorded on that map, a CSV file that needs no map
    (see --inputs), or a CSV file with one column for each place.
    """
    options = KernelOptions(**kernel_words)
    options_given: dict[str, Any] = {
        **{"value": value, "place": place, "scale": scale, "snap": snap},
        **{"scenario": scenario, "map_file": map_file, "overrides": overrides},
    }
    if options.kernels is not None:
        _refuse(_LENGTHS_ONLY, "is for length-scales; with --kernels the kernel has its own")
        asked = options.asked(data, **options_given)
        learn_kernels(asked, options, seed=seed, out=out, as_json=as_json)
        return
    _refuse(KERNEL_OPTIONS, "is for kernels: give --kernels too, such as --kernels k12")
    from gp_active_sensing.config import to_mapping
    from gp_active_sensing.errors import ConfigError
    from gp_active_sensing.util.files import write_whole
    from gp_active_sensing_learning import RowRequest, belief_section, load_readings, section_text
    from gp_active_sensing_learning import learn as search
    from gp_active_sensing_learning.data.request import is_bag

    if is_bag(data):
        msg = (
            f"{data} is a bag: learn length-scales from the run that `gp-active-sensing replay` "
            "leaves of it, or kernels, with --kernels"
        )
        raise ConfigError(msg)
    job = load_readings(RowRequest(data, **options_given))
    for note in job.readings.notes:
        echo(f"note: {note}", err=True)
    estimate = search(
        job.config,
        job.topology,
        job.readings,
        starts=starts,
        subset=subset,
        seed=seed,
        per_feature=per_feature,
        noise=noise,
    )
    section = belief_section(estimate, job.config, way)
    if as_json:
        found = dataclasses.asdict(estimate) | {"belief": to_mapping(section)}
        click.echo(json.dumps(_finite(found), indent=2, allow_nan=False))
    text = section_text(section, _remarks(job, estimate, overrides))
    if out is not None:
        write_whole(out, text)
    if not as_json:
        click.echo(text, nl=False)
        if out is not None:
            echo(f"written: {out}", err=True)


def _refuse(names: Sequence[str], why: str) -> None:
    """Reject the options in `names` that the user has given. The message ends with `why`."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            msg = f"{parameter.opts[0]} {why}"
            raise click.UsageError(msg)


def _remarks(
    job: DataRequest, estimate: HyperParameterEstimate, overrides: tuple[str, ...]
) -> dict[str, str]:
    from gp_active_sensing.kernels import graph_kernels

    names = job.topology.feature_names
    graph = job.config.kernel in graph_kernels
    over = "the road graph" if graph else ", ".join(names if len(names) < 7 else [*names[:3], "…"])
    scales = " ".join(f"{ell:.3g}" for ell in estimate.length_scales)
    numbers = [
        ("length-scale", scales, estimate.errors[0]),
        ("signal", f"{estimate.signal_std:.3g}", estimate.errors[1]),
        ("noise", f"{estimate.noise_std:.3g}", estimate.errors[2]),
    ]
    if estimate.place_gain is not None:
        numbers.append(("each place's own", f"{estimate.place_std:.3g}", estimate.errors[3]))
    shown = [f"{word} {number}{_within(error)}" for word, number, error in numbers]
    mean = " ".join(f"{value:.3g}" for value in estimate.mean)
    starts = len(estimate.log_posterior)
    # The length-scales apply only to this map, which the section does not name.
    of_map = [given for given in overrides if given.startswith("map.")]
    return {
        "learned from": f"{job.readings.source}: {estimate.readings} readings of "
        f"{estimate.places} places of map {job.topology.name!r}"
        + (f", with {', '.join(of_map)}" if of_map else ""),
        "kernel": f"{job.config.kernel} of {over}",
        "found": ", ".join(shown),
        "each place's own": _of_places(estimate),
        "mean": mean if job.config.mean == "constant" else f"{mean} (constant, then slopes)",
        "search": f"{estimate.agreeing} of {starts} starts agree",
    }


def _within(error: float) -> str:
    """Return the uncertainty in words, for the standard error of a logarithm."""
    if error == 0.0:
        return " (given)"
    return f" (within {100 * error:.0f} %)" if error < 3.0 else " (not certain)"


def _of_places(estimate: HyperParameterEstimate) -> str:
    """Return the message about the independent component of each place."""
    if estimate.place_gain is None:
        again = estimate.readings - estimate.places
        read = f"only {again} readings are" if again else "no reading is"
        return (
            f"not known: {read} of a place that was read before, so the noise above has it in it. "
            "Half of its variance is taken for it; read places again, or give the sensor's --noise"
        )
    gain = estimate.place_gain
    if estimate.place_part_found:
        return f"{gain:.1f} nat more probable than nothing"
    return f"not certain, {gain:.1f} nat against nothing: both are candidates"


def _finite(found: dict[str, Any]) -> dict[str, Any]:
    """Return `found` with None in place of numbers that JSON cannot represent."""
    errors = [e if math.isfinite(e) else None for e in found["errors"]]
    gain = found["place_gain"]
    known = gain is not None and math.isfinite(gain)
    return found | {"errors": errors, "place_gain": gain if known else None}
