"""Names that a file or a stranger in the ROS domain could send."""

from __future__ import annotations

_KEY = "policy.name: external"
HOSTILE = (
    *(f"map{end}    {_KEY}{end}" for end in ("\n", "\r", "\r\n", "\x85", "\u2028", "\u2029")),
    f"map\n{_KEY}\n#",
    f"map # {_KEY}",
    f'map" \n{_KEY}',
    f"map'\n{_KEY}",
    f"a\\\n{_KEY}",
    "map: {a: b}",
    "map\n---\n/**:\n",
    "map\n...\n",
    "\x00\x07\x1b[2J\x7f",
    "\ufeffmap",
    "a\u202eb",
    "\t- x",
    "!!python/object:os.system",
    "&a *a",
    "{start}",
    "%s%n",
    "\N{GRINNING FACE}",
)
"""Line breaks and what follows one, quotes, comments, controls, marks of YAML and of formats."""
