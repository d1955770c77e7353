"""How the figures look; colours of text and axes follow the page, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gp_active_sensing.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

__all__ = [
    "ACCENT",
    "INK",
    "PAPER",
    "SECOND",
    "figure_style",
    "require_matplotlib",
    "sequential",
    "to_svg",
]

# Stand-ins that become CSS variables in the page, so that one picture serves both themes.
INK = "#0a0b0c"
"""Text, axes, the driven path."""
_FAINT = "#0d0e0f"
PAPER = "#fafbfc"
"""What is behind a picture, for halos."""
_VARIABLES = {INK: "var(--ink)", _FAINT: "var(--line)", PAPER: "var(--card)"}

ACCENT = "#d9541e"
SECOND = "#2f7fc1"


def require_matplotlib() -> None:
    """Do nothing when matplotlib can be imported.

    Raises:
        MissingDependencyError: it cannot; the message says how to install it.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        msg = (
            "matplotlib is missing; install it with: pip install 'gp_active_sensing[report]', then "
            "run: gp-active-sensing report RUN_DIR"
        )
        raise MissingDependencyError(msg) from error


@contextmanager
def figure_style() -> Iterator[None]:
    """Set what all figures share; text stays text, so the page's font and colour apply."""
    import matplotlib

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "gp_active_sensing",
        "font.family": "sans-serif",
        "font.size": 9.0,
        # Units and names are the user's; a "$" among them is no formula.
        "text.parse_math": False,
        "text.color": INK,
        "axes.edgecolor": _FAINT,
        "axes.labelcolor": INK,
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": _FAINT,
        "grid.linewidth": 0.5,
        "axes.axisbelow": True,
        "xtick.color": INK,
        "ytick.color": INK,
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "legend.frameon": False,
        "legend.fontsize": 8.0,
    }
    with matplotlib.rc_context(settings):
        yield


def sequential(name: str, low: float = 0.08, high: float = 0.92) -> Colormap:
    """Return a colour map without its ends, which vanish on a dark or a light page."""
    import matplotlib
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap

    colours = matplotlib.colormaps[name](np.linspace(low, high, 256))
    return LinearSegmentedColormap.from_list(f"{name}_middle", colours)


def to_svg(figure: Figure, key: str, label: str) -> str:
    """Return a figure as an inline SVG element.

    Args:
        figure: what to draw.
        key: word that makes the identifiers inside unique on the page.
        label: what it shows, for people who do not see it.
    """
    stream = io.StringIO()
    figure.savefig(stream, format="svg", dpi=144, metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{key}-', svg)
    svg = re.sub(r'href="#', f'href="#{key}-', svg)
    svg = svg.replace("url(#", f"url(#{key}-")
    for stand_in, variable in _VARIABLES.items():
        svg = svg.replace(stand_in, variable)
    # Let the page decide on the size; the view box keeps the proportions.
    head, rest = svg.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{label}">{rest}'
