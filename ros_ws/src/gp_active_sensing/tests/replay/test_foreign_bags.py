"""Bags of other robots: definitions of their own, quaternions and values that are none."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from gp_active_sensing.errors import ReplayError
from gp_active_sensing.replay import Bag
from gp_active_sensing.replay.options import ReplayOptions
from gp_active_sensing.replay.run import replay_bag
from tests.cases import for_each
from tests.replay.bags import STORE, header, message, write_bag
from tests.replay.missions import odometry, temperature

START, TENTH = 1_700_000_000_000_000_000, 100_000_000
THING = "probe_msgs/msg/Thing"
OVERRIDES = (
    *("map.kind=grid", "map.columns=4", "map.rows=1", "map.spacing=10", "reading.gate=0"),
    *("belief.length_scales=[10, 30]", "belief.signal_std=[2.0]", "belief.mean_std=20"),
)
GIVEN = ReplayOptions(overrides=OVERRIDES, pose_topic="/odom", reading_topic="/value")
Make = Callable[[int, float], Any]


def driven(
    path: Path, make: Make, turn: Callable[[Any], None] = lambda q: None, **how: Any
) -> Path:
    """Write a drive over four places; `make` gives the message of a stamp and a value."""
    messages: list[tuple[str, int, Any]] = []
    for step in range(31):
        stamp = START + step * TENTH
        pose = copy.deepcopy(odometry(stamp, 1.0 * step, 0.0))
        turn(pose.pose.pose.orientation)
        messages += [("/odom", stamp, pose), ("/value", stamp, make(stamp, 5.0 + 0.1 * step))]
    return write_bag(path, messages, **how)


def replayed(bag: Path, out: Path, field: str, **given: Any) -> dict[str, Any]:
    options = replace(GIVEN, reading_field=field, **given)
    return replay_bag(bag, out, options, belief_only=True).summary


def ranged(stamp: int, value: float, kind: Any, **more: float) -> Any:
    more |= {"radiation_type": 0, "field_of_view": 0.1, "min_range": 0.0, "max_range": 1e3}
    return kind(header=header(stamp), range=value, **more)


def means(out: Path) -> list[float]:
    rows = (out / "map.csv").read_text().splitlines()[1:]
    return [float(row.split(",")[3]) for row in rows]


def defined(*texts: tuple[str, str], base: Any = None) -> Any:
    """Return message types of a recorder, with definitions that replace those of the base."""
    found = {k: v for kind, text in texts for k, v in get_types_from_msg(text, kind).items()}
    store = get_typestore(Stores.EMPTY)
    store.register({**(base or STORE).fielddefs, **found})
    return store


def test_messages_are_read_by_the_definition_in_the_bag(tmp_path: Path) -> None:
    humble = get_typestore(Stores.ROS2_HUMBLE)  # its Range has no variance
    fields = "std_msgs/Header header\nint32 channel\nfloat64 temperature\nfloat64 variance\n"
    longer = defined(("sensor_msgs/msg/Temperature", fields))
    nested = defined(("geometry_msgs/msg/Point", "float32 x\nfloat32 y\nfloat32 z\n"))

    def channel(stamp: int, value: float) -> Any:
        kind = longer.types["sensor_msgs/msg/Temperature"]
        return kind(header=header(stamp), channel=7, temperature=value, variance=0.0)

    def point(stamp: int, value: float) -> Any:
        where = nested.types["geometry_msgs/msg/Point"](x=0.0, y=0.0, z=value)
        return nested.types["geometry_msgs/msg/PointStamped"](header=header(stamp), point=where)

    sonar = functools.partial(ranged, kind=humble.types["sensor_msgs/msg/Range"])
    cases = [(sonar, "range", humble), (channel, "temperature", longer)]
    for number, (make, field, store) in enumerate(cases):
        for storage in ("mcap", "sqlite3"):
            bag = driven(tmp_path / f"{number}{storage}", make, store=store, storage=storage)
            out = tmp_path / f"out{number}{storage}"
            assert replayed(bag, out, field)["observed"] == 4
            assert means(out) == pytest.approx([5.2, 6.0, 7.0, 7.8], abs=0.3)
            with Bag(bag) as found:  # a subscriber has the standard definition
                sent = found.standard(next(m for m in found.messages() if m.topic == "/value"))
            content = STORE.deserialize_cdr(sent, f"sensor_msgs/msg/{field.title()}")
            assert getattr(content, field) == 5.0
    messages = [("/point", START, point(START, 2.5)), ("/value", START, temperature(START, 1.0))]
    with Bag(write_bag(tmp_path / "nested", messages, store=nested)) as found:
        first, second = found.messages()
        assert found.decode(first).point.z == 2.5
        assert found.decode(second).temperature == 1.0


def by_hand(path: Path, *topics: tuple[str, str, str, bytes]) -> Path:
    """Write an MCAP file of one message a topic: its name, encoding, definition, and bytes."""
    from mcap.writer import Writer

    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start("ros2")
        for name, encoding, text, data in topics:
            schema = writer.register_schema(THING, encoding, text.encode())
            channel = writer.register_channel(name, "cdr", schema)
            writer.add_message(channel, START, data, START)
        writer.finish()
    return path


FLOAT = b"\x00\x01\x00\x00" + b"\x00\x00\x00\x00\x00\x00\x04\x40"  # 2.5


def test_a_faulty_definition_concerns_its_own_topic_only(tmp_path: Path) -> None:
    good = ("/good", "ros2msg", "float64 value\n", FLOAT)
    for number, text in enumerate(("float64 value value\n!", "\x00\xff", "Nothing[ x\n", "")):
        topics = [("/bad", "ros2msg", text, FLOAT), good] if text else [good]
        path = by_hand(tmp_path / f"{number}.mcap", *topics)
        with Bag(path) as bag:
            for found in bag.messages():
                if found.topic == "/good":
                    assert bag.decode(found).value == 2.5
                else:
                    with pytest.raises(ReplayError):
                        bag.decode(found)
    idl = "module probe_msgs { module msg { struct Thing { double value; }; }; };\n"
    rule = "=" * 80
    for number, text in enumerate((idl, f"{rule}\nIDL: probe_msgs/msg/Thing\n{idl}")):
        path = by_hand(tmp_path / f"idl{number}.mcap", ("/good", "ros2idl", text, FLOAT))
        with Bag(path) as bag:
            assert bag.decode(next(bag.messages())).value == 2.5


def test_a_definition_that_makes_much_of_little_is_refused(tmp_path: Path) -> None:
    rule = "=" * 80
    for number, text in enumerate(
        (
            f"Z[100000] x\n{rule}\nMSG: probe_msgs/Z\nfloat64 a\n",
            "string[100000] x\n",
            f"Z[1000] x\n{rule}\nMSG: probe_msgs/Z\n\n",
            "".join(f"float64 a{i}\n" for i in range(3000)),
            "float64 a\n# " + 300_000 * "x",
            f"Thing x\n{rule}\nMSG: probe_msgs/Thing\nThing y\n",
        )
    ):
        path = by_hand(tmp_path / f"{number}.mcap", ("/bad", "ros2msg", text, FLOAT))
        with Bag(path) as bag, pytest.raises(ReplayError):
            bag.decode(next(bag.messages()))
    text = "float64[1000000] a\n"  # one line of code, and bounded by the bytes
    with Bag(by_hand(tmp_path / "x.mcap", ("/bad", "ros2msg", text, FLOAT))) as bag:
        with pytest.raises(ReplayError, match="cannot decode"):
            bag.decode(next(bag.messages()))


def test_a_field_called_header_is_one_only_by_its_type(tmp_path: Path) -> None:
    texts = ("uint8 header", "string header", "uint8[4] header", "probe_msgs/Header header")
    values: tuple[Any, ...] = (85, "A5", [1, 2, 3, 4], None)
    for number, (text, value) in enumerate(zip(texts, values, strict=True)):
        own = ("probe_msgs/msg/Header", "float64 stamp\n")
        store = defined(own, (THING, f"{text}\nfloat32 value\n"))

        def thing(stamp: int, reading: float, store: Any = store, value: Any = value) -> Any:
            if value is None:
                value = store.types["probe_msgs/msg/Header"](stamp=3.0)
            if isinstance(value, list):
                value = np.array(value, dtype=np.uint8)
            return store.types[THING](header=value, value=reading)

        bag = driven(tmp_path / f"bag{number}", thing, store=store)
        assert replayed(bag, tmp_path / f"out{number}", "value")["observed"] == 4


def plain(stamp: int, value: float) -> Any:
    return temperature(stamp, value, 0.0)


def test_quaternions_are_normalised_or_refused_and_counted(tmp_path: Path) -> None:
    """The sensor sits 10 m behind the pose, in the place before."""

    def scaled(by: float) -> Callable[[Any], None]:
        def turn(q: Any) -> None:
            q.x, q.y, q.z, q.w = (by * v for v in (q.x, q.y, q.z, q.w))

        return turn

    mounted = {"overrides": (*OVERRIDES, "reading.mount=[-10.0, 0.0]")}
    expected = None
    for number, by in enumerate((1.0, 0.5, -3.0, 1e-200, 1e200, 0.0, math.nan, math.inf)):
        bag = driven(tmp_path / f"bag{number}", plain, scaled(by))
        out = tmp_path / f"out{number}"
        summary = replayed(bag, out, "temperature", **mounted)
        usable = 0.0 < abs(by) < math.inf
        assert summary["replay"]["orientations_ignored"] == (0 if usable else 31), by
        expected = means(out) if expected is None else expected
        if usable:
            assert means(out) == pytest.approx(expected)


@for_each(
    "field, fill, valid",
    [
        ("temperature", -9999.0, ""),
        ("temperature", 85.0, "[-5, 40]"),
        ("range", 1e20, ""),  # of single precision
    ],
)
def test_a_fill_value_is_no_reading_even_as_the_first(
    tmp_path: Path, field: str, fill: float, valid: str
) -> None:
    def make(stamp: int, value: float) -> Any:
        value = fill if stamp == START else value
        if field == "temperature":
            return plain(stamp, value)
        return ranged(stamp, value, STORE.types["sensor_msgs/msg/Range"], variance=0.0)

    bag = driven(tmp_path / "bag", make)
    more = (f"reading.valid={valid}",) if valid else ()
    summary = replayed(bag, tmp_path / "out", field, overrides=(*OVERRIDES, *more))
    reasons = summary["rejected_by_reason"]
    assert reasons == {"not_valid" if valid else "fill_value": 1}
    assert means(tmp_path / "out") == pytest.approx([5.2, 6.0, 7.0, 7.8], abs=0.3)


def test_a_bag_of_which_nothing_can_be_read_fails_with_the_reason(tmp_path: Path) -> None:
    cases: list[tuple[Make, str]] = [
        (lambda stamp, value: plain(stamp, math.nan), "not_finite"),
        (lambda stamp, value: plain(stamp - 100 * 10**9, value), "no_pose"),
    ]
    for number, (make, word) in enumerate(cases):
        bag = driven(tmp_path / f"bag{number}", make)
        with pytest.raises(ReplayError, match=f"31 {word}"):
            replayed(bag, tmp_path / f"out{number}", "temperature")
    store = get_typestore(Stores.ROS2_JAZZY)
    whole = store.serialize_cdr

    def cut(content: Any, kind: str) -> Any:
        data = whole(content, kind)
        return data[:30] if kind == "sensor_msgs/msg/Temperature" else data

    store.serialize_cdr = cut  # type: ignore[method-assign]
    bag = driven(tmp_path / "cut", plain, store=store)
    with pytest.raises(ReplayError, match="31 of /value"):
        replayed(bag, tmp_path / "cut_out", "temperature")


def test_a_velocity_beside_the_poses_of_a_bag_is_used(tmp_path: Path) -> None:
    """A boat at anchor: its poses wander, its velocity says that it stands."""
    turn, messages = np.arange(200) / 5.0, []
    wander = 5.0 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    wander += np.random.default_rng(3).normal(scale=0.1, size=wander.shape)
    zero = message("geometry_msgs/msg/Vector3", x=0.0, y=0.0, z=0.0)
    still = message("geometry_msgs/msg/Twist", linear=zero, angular=zero)
    for step, (x, y) in enumerate(wander.tolist()):
        stamp = START + step * 10 * TENTH
        twist = message("geometry_msgs/msg/TwistStamped", header=header(stamp), twist=still)
        messages += [
            ("/velocity", stamp, twist),
            ("/odom", stamp, odometry(stamp, x, y)),
            ("/value", stamp, temperature(stamp, 5.0)),
        ]
    bag = write_bag(tmp_path / "bag", messages)
    driven_metres = [
        replayed(bag, tmp_path / name, "temperature", overrides=(*OVERRIDES, *more))["metres"]
        for name, more in (("without", ()), ("beside", ("pose.twist_topic=velocity",)))
    ]
    assert driven_metres[0] > 20.0
    assert driven_metres[1] == 0.0
