from __future__ import annotations

import pytest

pytest.importorskip("rosbags", reason="the extra [bag] is not installed")

from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from gp_active_sensing.errors import ConfigError, MissingDependencyError
from gp_active_sensing.messages.conversions import FieldPath
from gp_active_sensing.replay.topics import BagTypes


@pytest.fixture(name="types")
def fixture_types() -> BagTypes:
    store = get_typestore(Stores.ROS2_JAZZY)
    text = "float64[] depth\nour_msgs/Part[2] parts\nbyte raw\nbool[3] good\n"
    text += "=" * 80 + "\nMSG: our_msgs/Part\nfloat32 x\nuint8[<=4] levels\n"
    store.register(get_types_from_msg(text, "our_msgs/msg/Sounding"))
    return BagTypes(store)


def test_fields_are_in_the_words_of_rosidl(types: BagTypes) -> None:
    assert types.fields("our_msgs/msg/Sounding") == {
        "depth": "sequence<double>",
        "parts": "our_msgs/msg/Part[2]",
        "raw": "octet",
        "good": "boolean[3]",
    }
    assert types.fields("our_msgs/Part")["x"] == "float"
    assert types.fields("sensor_msgs/msg/Imu")["orientation_covariance"] == "double[9]"


def test_what_is_not_there_is_said_with_the_nearest(types: BagTypes) -> None:
    with pytest.raises(ConfigError, match=r"no field 'dept'\. Did you mean 'depth'"):
        FieldPath.parse("dept", "our_msgs/msg/Sounding", types)
    with pytest.raises(ConfigError, match=r"Temperatur.* Did you mean 'Temperature'"):
        types.fields("sensor_msgs/msg/Temperatur")
    with pytest.raises(MissingDependencyError, match="neither the bag nor the standard messages"):
        types.fields("other_msgs/msg/Thing")
