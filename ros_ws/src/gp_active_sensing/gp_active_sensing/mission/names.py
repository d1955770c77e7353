"""Check and number the names of probes, which are also ROS namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gp_active_sensing.errors import ConfigError

MOST_PROBES = 128
"""Largest number of probes of a mission, including those that have left."""
LONGEST_NAME = 100
"""A probe's name has at most this number of characters, since a ROS topic has at most 255."""

_NAME = re.compile(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)


def probe_names(names: Sequence[str], key: str = "probes") -> tuple[str, ...]:
    """Return the names of probes after a check.

    Raises:
        ConfigError: a name is no namespace, is too long or repeated, or there are too many names.
    """
    if len(names) > MOST_PROBES:
        msg = f"{key}: {len(names)} names; expected {MOST_PROBES} at most"
        raise ConfigError(msg)
    problems = [
        f"{key}: a name of {len(name)} characters ({name[:20]!r}…); expected {LONGEST_NAME} at most"
        for name in names
        if len(name) > LONGEST_NAME
    ]
    problems += [
        f"{key}: {name!r} cannot be a namespace: letters, digits and _, not a digit first; "
        "such as probe_1 or fleet/boat"
        for name in names
        if len(name) <= LONGEST_NAME and not _NAME.fullmatch(name)
    ]
    twice = sorted({name for name in names if list(names).count(name) > 1})
    problems += [f"{key}: {name!r} comes more than once" for name in twice]
    if problems:
        raise ConfigError(problems)
    return tuple(names)


def numbered(text: str) -> tuple[str, ...]:
    """Parse names of probes: a number of probes, or names separated by commas.

    ``3`` gives probe_1, probe_2 and probe_3.

    Raises:
        ConfigError: a name is not valid, or the number is below 1 or above `MOST_PROBES`.
    """
    words = [word.strip() for word in text.split(",")]
    if len(words) == 1 and words[0].isascii() and words[0].isdigit() and words[0].strip("0"):
        digits = words[0].lstrip("0")
        if len(digits) > 9 or int(digits) > MOST_PROBES:
            msg = f"probes: {digits[:20]} probes; expected {MOST_PROBES} at most"
            raise ConfigError(msg)
        return tuple(f"probe_{i}" for i in range(1, int(words[0]) + 1))
    return probe_names(words)


def shared_topics(topics: Iterable[str], probes: Sequence[str]) -> str:
    """Return why several probes cannot use these topic names; "" = the names are usable."""
    shared = sorted(topic for topic in topics if topic.startswith("/"))
    if len(probes) < 2 or not shared:
        return ""
    return (
        f"{', '.join(shared)}: several probes cannot share a topic; without the / in front it "
        f"is {probe_topic(probes[0], shared[0].lstrip('/'))} and so on"
    )


def probe_topic(probe: str, topic: str) -> str:
    """Return the full name of a probe's topic; ``~/plan`` becomes ``~/probe_1/plan``.

    An absolute name (with a leading /) is returned unchanged.
    """
    if not probe or topic.startswith("/"):
        return topic
    private = "~/" if topic.startswith("~/") else ""
    return f"{private}{probe}/{topic.removeprefix('~/')}"
