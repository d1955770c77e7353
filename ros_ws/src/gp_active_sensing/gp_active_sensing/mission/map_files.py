"""The map of a mission as files in its run directory, for other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gp_active_sensing.errors import ActiveSensingError, ConfigError
from gp_active_sensing.export import FieldMap, check_format, rendered
from gp_active_sensing.loop import SensingLoop
from gp_active_sensing.records.run_directory import MAP, RunDirectory
from gp_active_sensing.topology import Topology

__all__ = ["MapFiles", "check_exports"]


def check_exports(formats: Sequence[str], topology: Topology) -> None:
    """Refuse formats that the map cannot be written in, before the mission begins.

    Raises:
        ConfigError: which one, and why.
    """
    problems = []
    for format in formats:
        try:
            check_format(format, topology)
        except ActiveSensingError as error:
            problems.append(f"mission.export: {format}: {error}")
    if problems:
        raise ConfigError(problems)


class MapFiles:
    """Writes ``map.csv`` and whatever else is wanted into a run directory.

    Args:
        run: the directory.
        config: of the mission, for its name and what the field is.
        formats: names of formats, see `gp_active_sensing.export.FORMATS`.
        unit: of the readings.
    """

    def __init__(
        self, run: RunDirectory, config: Mapping[str, Any], formats: Sequence[str], unit: str
    ) -> None:
        self._run = run
        self._formats = tuple(formats)
        field = config.get("field")
        quantity = field.get("quantity") if isinstance(field, Mapping) else None
        self._unit, self._quantity = unit, str(quantity or "value")
        self._title = str(config.get("name") or run.path.name)

    def write(self, loop: SensingLoop) -> tuple[str, ...]:
        """Write the map as it is; return the names of the files, () before the first reading.

        Args:
            loop: nobody else may change it meanwhile.

        Raises:
            RunError: they cannot be written.
        """
        if not self._formats or not loop.belief.observed.any():
            return ()
        field = FieldMap.of(
            loop.topology,
            loop.belief,
            unit=self._unit,
            quantity=self._quantity,
            title=self._title,
        )
        names: list[str] = []
        for format in self._formats:
            for name, content in rendered(field, MAP, format).items():
                self._run.write_file(name, content)
                names.append(name)
        return tuple(names)
