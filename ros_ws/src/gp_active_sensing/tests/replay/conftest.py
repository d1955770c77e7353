"""Without the extra [bag] there is nothing to replay."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = ["test_*.py"] if importlib.util.find_spec("rosbags") is None else []
