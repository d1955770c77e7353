"""How long topics are listened to, by a clock that only goes when something is waited for."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from std_msgs.msg import Float64, Header

from gp_active_sensing.ros import qos, running_system
from gp_active_sensing.ros.received import LISTEN_SECONDS, TopicSample
from gp_active_sensing.ros.running_system import RunningSystem

STEP = 0.01
TYPES = {"/pose": "std_msgs/msg/Float64", "/reading": "std_msgs/msg/Float64"}


class World:
    """A node, and what is published.

    Args:
        first: by topic, when its first message comes [s]; more come each period.
        periods: by topic [s].
        times: seconds of the stamps in one; 0 = there is no /clock.
    """

    def __init__(
        self, first: dict[str, float], periods: dict[str, float], *, times: float = 0.0
    ) -> None:
        self.now, self.times = 0.0, times
        self._next, self.periods = dict(first), periods
        self._takes: dict[str, Callable[[Any, Any], None]] = {}

    @property
    def subscriptions(self) -> list[str]:
        return list(self._takes)

    def create_subscription(self, kind: Any, topic: str, take: Any, profile: Any) -> None:
        self._takes[topic] = take

    def destroy_subscription(self, topic: str) -> None:
        del self._takes[topic]

    def count_publishers(self, topic: str) -> int:
        return int(self.times > 0.0)

    def spin(self) -> None:
        self.now += STEP
        for topic, take in self._takes.items():
            while self._next.get(topic, 1e9) <= self.now:
                header = Header()
                header.stamp.sec, part = divmod(round(1e9 * self.times * self._next[topic]), 10**9)
                header.stamp.nanosec = part
                take(SimpleNamespace(header=header) if self.times else Float64(), {})
                self._next[topic] += self.periods.get(topic, 1e9)


@pytest.fixture
def receive(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[dict[str, TopicSample], list[str]]]:
    def listen(world: World) -> tuple[dict[str, TopicSample], list[str]]:
        clock = SimpleNamespace(monotonic=lambda: world.now, time_ns=lambda: 10**18)
        for module in (running_system, qos):
            monkeypatch.setattr(module, "time", clock)
        slow: list[str] = []
        return RunningSystem(world, world.spin).receive(TYPES, slow.extend), slow

    return listen


def test_quick_topics_take_a_second(receive: Any) -> None:
    world = World({"/pose": 0.2, "/reading": 0.2}, {"/pose": 0.05, "/reading": 0.1})
    found, slow = receive(world)
    assert 1.2 <= world.now < 1.5
    assert found["/pose"].rate == pytest.approx(20.0, rel=0.05)
    assert found["/reading"].rate == pytest.approx(10.0, rel=0.05)
    assert slow == []
    assert world.subscriptions == []


def test_it_listens_on_to_what_is_slow(receive: Any) -> None:
    world = World({"/pose": 0.2, "/reading": 2.5}, {"/pose": 0.05, "/reading": 2.9})
    found, slow = receive(world)
    assert slow == ["/reading"]
    assert 2.5 + 2 * 2.9 <= world.now < 2.5 + 2 * 2.9 + 0.1, "two periods tell enough"
    assert found["/reading"].period == pytest.approx(2.9, abs=0.05)


def test_a_silent_topic_and_one_message(receive: Any) -> None:
    world = World({"/pose": 4.0}, {})
    found, slow = receive(world)
    assert slow == ["/pose", "/reading"]
    assert found["/pose"].is_single
    assert found["/pose"].silent == pytest.approx(LISTEN_SECONDS - 4.0, abs=0.1)
    assert not found["/reading"].times


def test_what_falls_silent_is_slow(receive: Any) -> None:
    """A localisation that says something only when the robot has moved."""
    world = World({"/pose": 0.2, "/reading": 0.2}, {"/pose": 0.5, "/reading": 5.0})
    spin = world.spin

    def until_three() -> None:
        if world.now > 0.9:
            world.periods["/pose"] = 1e9
        spin()

    world.spin = until_three  # type: ignore[method-assign]
    found, _ = receive(world)
    assert found["/pose"].gap > 8.0


def test_simulated_time_goes_faster(receive: Any) -> None:
    """Poses 20 times a second, of a robot for which that is once."""
    first = {"/pose": 0.2, "/reading": 0.2}
    found, _ = receive(World(first, {"/pose": 0.05, "/reading": 0.1}, times=20.0))
    assert found["/pose"].rate == pytest.approx(20.0, rel=0.05)
    assert found["/pose"].period == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("wanted", [(), ("/a",), ("/typo",)])
def test_topics_are_awaited(monkeypatch: pytest.MonkeyPatch, wanted: tuple[str, ...]) -> None:
    node: Any = World({}, {}, times=1.0)
    monkeypatch.setattr(running_system, "time", SimpleNamespace(monotonic=lambda: node.now))
    starts = {"/a": 3.2, "/b": 3.5}
    node.get_topic_names_and_types = lambda: [(n, []) for n in starts if node.now >= starts[n]]
    assert list(RunningSystem(node, node.spin).topics(wanted)) == ["/a", "/b"]
    assert node.now == pytest.approx(4.0, abs=0.1)


def test_listeners() -> None:
    kinds = {"/rosout": ["a"], "/goal": ["b", "a", "b"], "/odom": []}
    node = SimpleNamespace(
        count_subscribers=lambda name: 1,
        get_topic_names_and_types=lambda: [(name, []) for name in kinds],
        get_subscriptions_info_by_topic=lambda name: [
            SimpleNamespace(topic_type=kind) for kind in kinds[name]
        ],
    )
    assert RunningSystem(node, lambda: None).listeners(["/goal"]) == {"/goal": ("a", "b")}
