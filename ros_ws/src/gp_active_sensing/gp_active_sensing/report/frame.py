"""A page as one file: frame, styles and scripts put together, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

__all__ = ["PAGE", "as_json", "build_page", "tile"]

PAGE = "report.html"
_ASSETS = "gp_active_sensing.report.assets"


def build_page(body: str, scripts: Sequence[str], data: Mapping[str, Any], **slots: str) -> str:
    """Return a page.

    Args:
        body: name of an HTML file among the assets, which the frame of all pages goes around.
        scripts: names of the scripts, in the order in which they run.
        data: handed to the scripts as the JSON element ``#data``.
        slots: HTML for the other slots of both; what comes from a run is escaped by the caller.
    """
    texts = [f"\n{_asset(name)}" for name in scripts]
    whole = _asset("frame.html").replace("$body", _asset(body))
    return Template(whole).substitute(
        slots,
        policy=_security(texts),
        css=_asset("page.css"),
        scripts="\n".join(f"<script>{text}</script>" for text in texts),
        data=as_json(data),
    )


def as_json(data: Mapping[str, Any]) -> str:
    """Return JSON that may stand inside a script element, whatever the texts in it are."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def tile(figure: str, text: str) -> str:
    """Return one of the headline figures, as HTML."""
    return f'<div class="tile"><b>{html.escape(figure)}</b><span>{html.escape(text)}</span></div>'


def _asset(name: str) -> str:
    return resources.files(_ASSETS).joinpath(name).read_text("utf-8")


def _security(scripts: Sequence[str]) -> str:
    """Return a policy that lets run these scripts only, and lets load nothing at all."""
    digests = (hashlib.sha256(text.encode("utf-8")).digest() for text in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)
    return html.escape(
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'", quote=False
    )
