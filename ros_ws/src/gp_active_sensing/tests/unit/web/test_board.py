from __future__ import annotations

import asyncio
import itertools
import json

from gp_active_sensing.web.view import Board, PacedCache


def test_a_viewer_gets_what_he_lacks_once() -> None:
    async def play() -> None:
        board = Board()
        await board.put({"a": "1", "b": "2"})
        first = board.version
        mark = board.mark()
        await board.put({"a": "1", "b": "3", "c": "4"})
        await board.put({"b": "5", "c": "4"})
        found = json.loads(board.since(first))
        assert found == {"whole": False, "gone": ["a"], "parts": {"b": 5, "c": 4}}
        whole = json.loads(board.since(-1))
        assert whole == {"whole": True, "gone": [], "parts": {"b": 5, "c": 4}}
        assert board.version_of(mark) == first
        assert not await board.put({"b": "5", "c": "4"})

    asyncio.run(play())


def test_marks_of_others_are_not_taken() -> None:
    board = Board()
    for mark in ("", "7", Board().mark(), board.mark() + "9", "x-" + "9" * 99, "é-²"):
        assert board.version_of(mark) == -1


def test_waiting_ends_with_news_or_the_end() -> None:
    async def play() -> None:
        board = Board()
        assert not await board.after(0, 0.0)
        waiting = asyncio.ensure_future(board.after(0, 1000.0))
        await asyncio.sleep(0)
        await board.put({"a": "1"})
        assert await waiting
        assert await board.after(0, 1000.0)
        waiting = asyncio.ensure_future(board.after(board.version, 1000.0))
        await asyncio.sleep(0)
        await board.close()
        assert not await waiting

    asyncio.run(play())


def test_what_costs_much_is_worked_out_seldom_and_the_last_one_does_not_wait() -> None:
    now, done = [0.0], itertools.count(1)

    def work() -> int:
        now[0] += 1.0
        return next(done)

    paced: PacedCache[int] = PacedCache(lambda: now[0], share=0.1)
    assert not paced.due
    assert paced.get(1, work) == 1
    assert paced.get(2, work) == 1, "as it was"
    assert not paced.due
    now[0] += 8.9
    assert not paced.due
    now[0] += 0.2
    assert paced.due
    assert paced.get(2, work) == 2
    assert paced.get(3, work) == 2
    assert paced.get(3, work, last=True) == 3
    assert not paced.due
