"""The reader of the pages finds what is wrong with a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.page_checks import check_parameters, overlaid
from tests.pages import NOT_EXECUTED, Step, blocks, modules, sources, steps
from tests.reader import Reader

Failure = (AssertionError, pytest.fail.Exception)


def read(folder: Path, text: str) -> Reader:
    """Play a page; raise what its last step raises."""
    page = folder / "page.md"
    page.write_text(text.replace("~~~", "```"), encoding="utf-8")
    work = folder / "work"
    work.mkdir()
    reader = Reader(page, work, {})
    for step in steps(page):
        reader.play(step)
    return reader


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("~~~sh\nrm -rf everything\n~~~", "nobody executes 'rm -rf everything'"),
        ("~~~sh\ngp-active-sensing policies --jsn\n~~~", "No such option"),
        ("~~~sh\ngp-active-sensing report nowhere\n~~~", "does not exist"),
        ("~~~sh fails\ngp-active-sensing policies\n~~~", "exit code 0"),
        ("~~~sh\nmake everything\n~~~", "everything"),
        (
            "~~~sh\nros2 launch gp_active_sensing probe.launch.py mapp:=x\n~~~",
            "mapp: unknown key",
        ),
        ("~~~sh\nros2 launch gp_active_sensing prob.launch.py\n~~~", "no launch file"),
        ("~~~sh\ngp-active-sensing policies\n~~~\n~~~text output\nzz…la\n~~~", "'zz…la' is not in"),
        ("~~~python\nx = 1\n~~~", "prints nothing"),
        ("~~~python\nprint(y)\n~~~", "NameError"),
        ("~~~yaml\na: 1\n~~~", "say what it is"),
        ("~~~yaml scenario over=line\nbudget: {readingss: 1}\n~~~", "Did you mean 'readings'"),
        ("~~~yaml parameters\nnode: {ros__parameters: {}}\n~~~", "no node of that name"),
        ("~~~csv\na,b\n~~~", "add file=NAME"),
    ],
)
def test_what_is_wrong_is_found(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)


def test_blocks_of_a_page_share_a_folder(tmp_path: Path) -> None:
    reader = read(
        tmp_path,
        "1. A list.\n\n   ~~~yaml scenario file=pond.yaml\n"
        "   map: {kind: grid, columns: 3, rows: 2}\n"
        "   field: {kind: gp, length_scale: 2.0}\n   belief: {length_scales: [2.0]}\n"
        "   budget: {readings: 2}\n   ~~~\n\n"
        "~~~sh\ngp-active-sensing run pond.yaml \\\n   --out run --no-report   # a comment\n~~~\n"
        "~~~text output\npond with tour, seed …: finished\n~~~\n",
    )
    assert (reader.folder / "run" / "summary.json").exists()


def test_a_failed_step_fails_again(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(y)\n```\n```python\nprint(1)\n```\n")
    reader = Reader(page, tmp_path, {})
    first, second = steps(page)
    reader.play(second)  # what does not need the first
    with pytest.raises(AssertionError, match="NameError"):
        reader.play(first)


SKIPPING = """
~~~yaml scenario file=mine.yaml needs=no_such_library
map: {kind: line, count: 4, spacing: 1.0}
~~~
~~~sh
gp-active-sensing run mine.yaml --out runs/mine
gp-active-sensing report runs/mine
gp-active-sensing policies
~~~
~~~text output
bal
~~~
~~~sh
gp-active-sensing report runs/minefield
~~~
"""


def test_what_needs_a_skipped_block_is_skipped_with_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(SKIPPING.replace("~~~", "```"), encoding="utf-8")
    scenario, run, report, other, told, last = steps(page)
    assert [modules(step) for step in (scenario, run, report)] == [{"no_such_library"}] * 3
    assert [sources(step) for step in (report, told)] == [(run,), (other,)]
    assert not modules(other) | modules(told) | modules(last), "of a similar name only"
    reader = Reader(page, tmp_path, {})
    with pytest.raises(pytest.skip.Exception, match=r"page\.md:6, which it needs, was skipped"):
        reader.play(report)
    with pytest.raises(pytest.skip.Exception, match=r"page\.md:2, .*: no_such_library"):
        reader.play(run)
    reader.play(told)
    with pytest.raises(AssertionError, match="runs/minefield does not exist"):
        reader.play(last)


def test_nodes_are_started_for_what_needs_their_files(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    runner = "python -m gp_active_sensing.ros.runner traffic_sim"
    page.write_text(
        f"```sh\n{runner} run_dir:=a\n{runner} run_dir:=b\ngp-active-sensing report b\n```\n"
    )
    started: list[str] = []

    class Noting(Reader):
        def _do(self, step: Step) -> None:
            started.append(step.text)

    Noting(page, tmp_path, {}).play(steps(page)[2])
    assert started == [f"{runner} run_dir:=b", "gp-active-sensing report b"]


def test_blocks_are_cut_into_steps(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```\nx\n```\n\n```sh\ncd a && make env\n# nothing\nmake test\n```\n")
    assert [(b.language, b.line) for b in blocks(page)] == [("", 1), ("sh", 5)]
    assert [(s.text, s.line) for s in steps(page)[1:]] == [
        ("cd a", 6),
        ("make env", 6),
        ("make test", 8),
    ]
    assert steps(page)[1].excuse == NOT_EXECUTED["cd"]
    assert not steps(page)[2].excuse
    page = tmp_path / "open.md"
    page.write_text("```sh\nmake\n")
    with pytest.raises(AssertionError, match="a block without an end"):
        blocks(page)


def test_a_part_is_laid_over_the_whole() -> None:
    base = {"name": "a", "map": {"kind": "line", "count": 3}, "policy": {"name": "bal", "alpha": 1}}
    assert overlaid(base, {"map": {"count": 4}})["map"] == {"kind": "line", "count": 4}
    other = overlaid(base, {"name": "b", "map": {"kind": "grid"}, "policy": {"name": "ie"}})
    assert other == {"name": "b", "map": {"kind": "grid"}, "policy": {"name": "ie"}}


def test_parameters_are_checked_as_the_node_does(tmp_path: Path) -> None:
    text = "/**: {ros__parameters: {budget: {readings: %s}}}"
    check_parameters(text % 3, tmp_path)
    with pytest.raises(ValueError, match=r"budget\.readings: must be 1 or more"):
        check_parameters(text % 0, tmp_path)
    with pytest.raises(ValueError, match="no list or mapping within a list"):
        check_parameters(text % "[[3]]", tmp_path)
