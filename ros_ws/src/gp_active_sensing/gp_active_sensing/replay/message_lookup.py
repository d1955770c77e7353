"""Find the messages that a node used in a bag that was recorded beside it."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import TypeAlias

from gp_active_sensing.mission.inbox import RawReading
from gp_active_sensing.mission.poses import Pose
from gp_active_sensing.replay.bag import Bag, BagMessage
from gp_active_sensing.replay.topics import TopicReader

__all__ = ["MessageLookup"]

What: TypeAlias = Pose | RawReading
AHEAD_NS = 60_000_000_000
"""How much later than the node the recorder may have had a message [ns of the bag]."""
MOST = 100_000
"""Messages of a topic that wait to be asked for; the node did not use what is older."""


class MessageLookup:
    """Reads on in a bag until a message turns up.

    A message with a stamp is known by it, one without by its turn.

    Args:
        bag: which is open.
        feed: reads the messages.
    """

    def __init__(self, bag: Bag, feed: TopicReader) -> None:
        self._messages: Iterator[BagMessage] = bag.messages(feed.topics)
        self._feed = feed
        self._next: BagMessage | None = next(self._messages, None)
        self._stamped: dict[tuple[str, str], OrderedDict[int, deque[What]]] = {}
        self._unstamped: dict[tuple[str, str], deque[What]] = {}
        self.read = 0
        """Messages."""

    def find(self, noted: What, probe: str, until_ns: int) -> What | None:
        """Return the message that the node used, None when the bag does not have it.

        Args:
            noted: what it was, by the journal.
            probe: whose.
            until_ns: when the node's use of it was recorded.
        """
        key = (_kind(noted), probe)
        if key not in self._feed.kinds:
            return None
        while True:
            pool = self._stamped.setdefault(key, OrderedDict())
            if waiting := pool.get(noted.stamp_ns):
                # A publisher may stamp several alike.
                found = noted if noted in waiting else waiting[0]
                waiting.remove(found)
                if not waiting:
                    del pool[noted.stamp_ns]
                return found
            if queue := self._unstamped.get(key):
                return dataclasses.replace(queue.popleft(), stamp_ns=noted.stamp_ns)
            if self._next is None or self._next.stamp_ns > until_ns + AHEAD_NS:
                return None
            self._read_on(self._next)

    def _read_on(self, message: BagMessage) -> None:
        self.read += 1
        for heard in self._feed.read(message, message.stamp_ns):
            what = heard.what
            key = (_kind(what), heard.probe)
            if not heard.stamped:
                self._unstamped.setdefault(key, deque(maxlen=MOST)).append(what)
                continue
            pool = self._stamped.setdefault(key, OrderedDict())
            pool.setdefault(what.stamp_ns, deque()).append(what)
            if len(pool) > MOST:
                pool.popitem(last=False)
        self._next = next(self._messages, None)


def _kind(what: What) -> str:
    return "pose" if isinstance(what, Pose) else "reading"
