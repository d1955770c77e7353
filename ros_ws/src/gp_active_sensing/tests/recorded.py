"""Answers on record: what seeded cases gave, in a JSON file beside their test.

They find a change that nobody meant. Where one is meant, the commit explains it and writes the
files again: ``GPAS_RECORD=1 python -m pytest tests/…``. Of some cases together there is a checksum
of everything but fractional numbers, and one weighted sum of these: of their sizes in logarithms,
since other processors round otherwise.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gp_active_sensing.util.files import json_ready

ROUNDING = 1e-4
"""How far two sums may be apart."""
TOGETHER = 8
"""Cases of one checksum."""


def check_recorded(file: Path, name: str, cases: Iterable[Any]) -> None:
    """Fail unless cases are those on record under a name, but for rounding."""
    every = list(cases)
    found = [_shortened(every[at : at + TOGETHER]) for at in range(0, len(every), TOGETHER)]
    record = json.loads(file.read_text("utf-8")) if file.exists() else {}
    if os.environ.get("GPAS_RECORD"):
        items = sorted({**record, name: found}.items())
        lines = [f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in items]
        file.write_text("{" + ",\n".join(lines) + "}\n", "utf-8")
        return
    assert name in record, f"{file.name} has no {name!r} yet: run this with GPAS_RECORD=1"
    assert len(found) == len(record[name])
    for number, (new, old) in enumerate(zip(found, record[name], strict=True)):
        same = new[0] == old[0] and abs(new[1] - old[1]) < ROUNDING
        where = f"{name}, cases {TOGETHER * number} to {TOGETHER * number + TOGETHER - 1}"
        assert same, f"{where} are not those of {file.name}; see tests/recorded.py"


def _shortened(case: Any) -> tuple[str, float]:
    words, total = [], 0.0
    for number, leaf in enumerate(_leaves(case), start=1):
        words.append("." if isinstance(leaf, float) else repr(leaf))
        if isinstance(leaf, float):
            total += (1.0 + math.sqrt(number) % 1.0) * math.asinh(1e3 * leaf)
    return f"{zlib.crc32(' '.join(words).encode()):08x}", round(total, 6)


def _leaves(item: Any) -> Iterator[Any]:
    """Yield what an item is made of, with words for where parts begin and end."""
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        found = ((field.name, getattr(item, field.name)) for field in dataclasses.fields(item))
        item = [value for pair in found if pair != ("quantity", "") for value in pair[1:]]
    item = item if isinstance(item, dict | list | tuple) else json_ready(item)
    if isinstance(item, dict):
        item = [part for pair in item.items() for part in pair]
    if isinstance(item, list | tuple):
        yield "["
        for part in item:
            yield from _leaves(part)
        yield "]"
    else:
        yield item
