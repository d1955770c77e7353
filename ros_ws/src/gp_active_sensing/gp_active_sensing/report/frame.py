"""HTML page in a single file, with styles, scripts and data."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np

_PACKAGE = "gp_active_sensing.report"
_COUNT = 64
# Lightness increases. The first and last colour differ from black and white.
_VALUES = ("#4b2a86", "#3f559f", "#2f7d9f", "#2aa08c", "#5dbb63", "#a9cc44", "#ead23c")
_DOUBT = ("#3d2c6e", "#6d2f86", "#a33a83", "#d64f6d", "#f07d55", "#f6b052", "#f8de7e")


def colour_table(anchors: tuple[str, ...]) -> tuple[str, ...]:
    """Return `_COUNT` colours ("#rrggbb"), interpolated linearly between the anchors."""
    corners = np.array([tuple(bytes.fromhex(anchor[1:])) for anchor in anchors])
    at = np.linspace(0.0, len(anchors) - 1.0, _COUNT)
    mixed = [np.interp(at, np.arange(len(anchors)), channel) for channel in corners.T]
    return tuple(
        f"#{round(red):02x}{round(green):02x}{round(blue):02x}"
        for red, green, blue in zip(*mixed, strict=True)
    )


VALUES = colour_table(_VALUES)
"""Colours of the field, from dark (small) to bright (large)."""
DOUBT = colour_table(_DOUBT)
"""Colours of the standard deviation."""
PAGE = "report.html"


def build_page(
    body: str,
    scripts: Sequence[str],
    data: Mapping[str, Any],
    *,
    connect: str = "",
    images: str = "",
    styles: Sequence[str] = ("page.css",),
    package: str = _PACKAGE,
    **slots: str,
) -> str:
    """Return a page.

    Args:
        body: name of the HTML asset that is inserted into ``frame.html``.
        scripts: names of the scripts, in the order of execution.
        data: data for the scripts, stored as JSON in the element ``#data``.
        connect: value of ``connect-src`` in the security policy; "" = none.
        images: value of ``img-src`` in the security policy; "" = none.
        styles: names of style sheet assets.
        package: package whose folder ``assets`` is searched first.
        slots: HTML for the named slots; the caller must escape texts of a run.
    """
    texts = [f"\n{asset(name, package)}" for name in scripts]
    whole = asset("frame.html").replace("$body", asset(body, package))
    return Template(whole).substitute(
        slots,
        policy=html.escape(security_policy(texts, connect, images), quote=False),
        css="\n".join(map(asset, styles)),
        scripts="\n".join(f"<script>{text}</script>" for text in texts),
        data=as_json(data),
    )


def as_json(data: Mapping[str, Any]) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def tile(figure: str, text: str) -> str:
    """Return the HTML of a headline figure."""
    figure = html.escape(figure).replace("_", "_<wbr>")  # allow line breaks in long names
    return f'<div class="tile"><b>{figure}</b><span>{html.escape(text)}</span></div>'


def asset(name: str, package: str = _PACKAGE) -> str:
    """Return the text of an asset of a package, or of this package if the other has none."""
    folders = [resources.files(owner) / "assets" for owner in (package, _PACKAGE)]
    return next(folder / name for folder in folders if (folder / name).is_file()).read_text("utf-8")


def security_policy(scripts: Sequence[str], connect: str = "", images: str = "") -> str:
    """Return a Content-Security-Policy that allows the given scripts and no other content."""
    digests = (hashlib.sha256(text.encode("utf-8")).digest() for text in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)
    policy = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'"
    more = (("connect-src", connect), ("img-src", images))
    return "".join([policy, *(f"; {word} {where}" for word, where in more if where)])
