"""A program for the policy `external`: the least certain candidate, or, if asked to, nonsense.

``python tests/chooser.py`` answers; a word after it says from which decision on, and how, it
fails, such as ``hang:2``. Nothing of this project is imported, and nothing but the library that
comes with Python.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

CHOOSER = Path(__file__).resolve()


def answer(places: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
    """The least certain candidate, by its name, and the others by their certainty."""
    std = task["belief"]["std"]
    order = sorted(task["candidates"]["places"], key=lambda place: (-std[place], place))
    rest = [place for place in order[1:4] if place not in task["pending"]]
    return {"place": places["names"][order[0]], "route": rest, "value": std[order[0]]}


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fail(how: str, task: dict[str, Any]) -> None:
    said: dict[str, str] = {
        "garbage": "the best place is 3",
        "list": "[3]",
        "deep": "[" * 100_000,
        "elsewhere": json.dumps({"place": "nowhere"}),
        "beyond": json.dumps({"place": 10**9}),
        "true": json.dumps({"place": True}),
        "stands": json.dumps({"place": task["at"]}),
        "nothing": json.dumps({"error": "no idea"}),
        "route": json.dumps({"place": task["candidates"]["places"][0], "route": ["nowhere"]}),
        "number": json.dumps({"place": task["candidates"]["places"][0], "route": 7}),
        "value": json.dumps({"place": task["candidates"]["places"][0], "value": float("nan")}),
        "digits": json.dumps({"place": task["candidates"]["places"][0], "value": 10**400}),
    }
    if how == "die":
        sys.stderr.write("this is the end\n")
        sys.stderr.flush()
        os._exit(3)
    elif how in ("hang", "late"):
        time.sleep(600.0 if how == "hang" else 0.6)
        if how == "late":
            say(json.dumps({"place": task["candidates"]["places"][-1]}))
    elif how == "huge":
        while True:
            sys.stdout.write("x" * 65536)
    elif how == "bytes":
        sys.stdout.buffer.write(b"\xff\xfe\x00{\n")
        sys.stdout.flush()
    else:
        say(said[how])


def main() -> None:
    how, _, first = (sys.argv[1] if len(sys.argv) > 1 else "").partition(":")
    places: dict[str, Any] = {}
    number = 0
    for line in sys.stdin:
        task = json.loads(line)
        if task["type"] == "map":
            places = task
            continue
        number += 1
        if how == "loud":
            sys.stderr.write("thinking\x1b[31m\n" + "y" * 5000 + "\n")
            sys.stderr.flush()
        if how == "chatty":
            say(f"{json.dumps(answer(places, task))}\none more thing")
        elif how in ("", "loud") or number < int(first or 1):
            say(json.dumps(answer(places, task)))
        else:
            fail(how, task)


if __name__ == "__main__":
    main()
