"""Suites beside each other do not hear each other: a domain belongs to one process."""

from __future__ import annotations

import subprocess
import sys

from tests.ros.conftest import domain_id

CODE = """
import os, sys
os.getpid = lambda: int(sys.argv[1])  # whatever number this process has
from tests.ros.conftest import domain_id
print(domain_id(), domain_id(), domain_id("pages"), flush=True)
sys.stdin.read()
"""


def test_a_domain_belongs_to_one_process() -> None:
    mine = domain_id()
    assert 1 <= mine <= 100
    found = []
    # Both would like the domain that this process has.
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, str(mine - 1)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in started:
        assert process.stdout is not None
        found.append(process.stdout.readline().split())
    for process in started:
        process.communicate("")
        assert process.returncode == 0
    assert all(first == second for first, second, _ in found)
    assert len({mine, *(int(one) for first, _, pages in found for one in (first, pages))}) == 5
