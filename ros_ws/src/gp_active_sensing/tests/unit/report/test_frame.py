from __future__ import annotations

import base64
import hashlib
import html
import json
import re

from gp_active_sensing.report.frame import as_json, build_page
from tests.unit.report.runs import HOSTILE


def test_json_cannot_leave_its_element() -> None:
    data = {"a": HOSTILE, "b": "\u2028<!--", "c": [1.5, None, "é"]}
    text = as_json(data)
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == data


def test_a_page_allows_its_own_scripts_only() -> None:
    head = ("title", "heading", "description", "status", "notes")
    empty = dict.fromkeys((*head, "tiles", "stages", "config", "facts"), "")
    page = build_page("run.html", ("base.js", "chart.js"), {"x": 1}, **empty)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    allowed = re.findall(r"'sha256-([^']+)'", html.unescape(policy.group(1)))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert allowed == digests
    assert "default-src 'none'" in html.unescape(policy.group(1))
