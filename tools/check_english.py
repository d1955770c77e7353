"""Check the sentences of docstrings, help texts, log messages and pages.

``make check`` runs this script. The script prints ``file:line: rule: text`` for each finding, and
fails if a rule has more findings than ``tools/english_baseline.json`` allows.

    python tools/check_english.py              # findings above the baseline
    python tools/check_english.py --all        # every finding, warnings included
    python tools/check_english.py --write      # store lower counts as the new baseline
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "ros_ws" / "src"
BASELINE = Path(__file__).with_name("english_baseline.json")
PACKAGES = ("gp_active_sensing", "gp_active_sensing_learning", "gp_active_sensing_bench")
WARN, LIMIT = 25, 40  # words of a sentence
LOG_METHODS = {"debug", "info", "warn", "warning", "error", "fatal", "critical", "exception"}

OPENINGS = re.compile(
    r"(of|what|by what|by how|for who|for what|whether|who|whose)\b", re.IGNORECASE
)
"""Pattern of forbidden first words of docstrings, help texts and log messages."""

PHRASES = [
    r"\bfor who\b",
    r"\bby what\b",
    r"\b(?:is|are|was|were|be|been|being) (?:said|told)\b",
    r"\btold apart\b|\btells? (?:\w+ ){0,4}apart\b|\bhardly apart\b",
    r"\btells? of (?:an)?other\b|\breadings tell of\b",
    r"\btells? (?:it )?(?:most|more|nothing|something|little|the same) (?:about|of)\b",
    r"\b(?:is|are) level with\b",
    r"\bno difference is\b",
    r"\bbehind by\b",
    r"\bwhat is left of\b|\bof one without\b",
    r"\bgives? cause to\b",
    r"\bsays? (?:of|by how much)\b",
    r"\b(?:is|are) said of\b",
    r"\bexplains? [^.]{0,12}% of the variance of a place",
    r"\bnobody could promise\b",
    r"\bhas to be known to go on alike\b|\bgo(?:es)? on alike\b",
    r"\bsomebody has to look at\b",
    r"^of the field about its mean\b",
    r"\bthe last waypoint stands\b",
    r"\bof which\b",
    r"\bbut for\b",
    r", (?:too|as well)[.;]",
    r"\bspeaks? for\b|\bspeaks? of\b",
    r"\bmakes? nothing of\b|\bnothing is made of\b",
]
"""Patterns of forbidden phrases. Use the term of the field instead."""

USER_PAGES_EXEMPT = {"fidelity.md", "theory.md", "CHANGELOG.md"}
"""Pages that may show standard errors with "±"."""


@dataclass(frozen=True)
class Text:
    """Text with its file, line and kind."""

    path: Path
    line: int
    kind: str  # docstring, attribute, help, log, page
    text: str


@dataclass(frozen=True)
class Finding:
    """A sentence that breaks a rule."""

    text: Text
    rule: str
    excerpt: str

    @property
    def area(self) -> str:
        """Part of the repository in which the finding is counted."""
        path = self.text.path.relative_to(ROOT)
        if path.suffix == ".md":
            return "pages"
        return "product" if path.parts[2] == "gp_active_sensing" else "others"

    def __str__(self) -> str:
        where = f"{self.text.path.relative_to(ROOT)}:{self.text.line}"
        return f"{where}: {self.rule} ({self.text.kind}): {self.excerpt}"


def python_texts(path: Path) -> Iterator[Text]:
    """Yield docstrings, help texts and log messages of a module."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            for before, statement in zip([None, *node.body], node.body, strict=False):
                if not _is_text(statement):
                    continue
                text = statement.value.value
                if statement is first:
                    kind = "module" if isinstance(node, ast.Module) else "docstring"
                    yield Text(path, statement.lineno, kind, text)
                elif isinstance(before, ast.Assign | ast.AnnAssign):
                    yield Text(path, statement.lineno, "attribute", text)
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in ("help", "short_help", "epilog"):
                    yield from _constant(path, keyword.value, "help")
            function = node.func
            if isinstance(function, ast.Attribute) and function.attr in LOG_METHODS and node.args:
                yield from _constant(path, node.args[0], "log")


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _constant(path: Path, node: ast.expr, kind: str) -> Iterator[Text]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield Text(path, node.lineno, kind, node.value)
    elif isinstance(node, ast.JoinedStr):
        parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
        yield Text(path, node.lineno, kind, "".join(map(str, parts)))


def page_texts(path: Path) -> Iterator[Text]:
    """Yield the paragraphs, list items and table cells of a page. Leave out code and formulas."""
    block: list[str] = []
    start, fence, generated = 1, "", False
    for number, read in enumerate([*path.read_text("utf-8").splitlines(), ""], start=1):
        line = read
        mark = re.match(r"\s*(`{3,}|~{3,}|\$\$)", line)
        if fence or mark:
            if mark and (not fence or line.strip().startswith(fence)):
                one_line = mark[1] == "$$" and line.strip() != "$$" and line.rstrip().endswith("$$")
                fence = "" if fence or one_line else mark[1]
            line = ""
        generated = (generated or "<!-- generated" in line) and "<!-- end -->" not in line
        row = line.startswith("|")
        if generated or line.startswith(("<!--", "    ")):
            line = ""
        if not line.strip() or row or re.match(r"\s*([-*]|\d+\.) |#|>", line):
            if block:
                yield Text(path, start, "page", " ".join(block))
            block, start = [], number
        if row:
            cells = [] if set(line) <= set("|-: ") else re.split(r"(?<!\\)\|", line)
            yield from (Text(path, number, "page", c.strip()) for c in cells if c.strip())
        elif line.strip():
            block.append(re.sub(r"^\s*([-*]|\d+\.|#+|>) ", "", line).strip())


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line offset, sentence). Section headers such as Args: and formulas end a sentence."""
    offset = 0
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[\w*`]+:(?:\s|$))|\n(?=\s*(?:[-*|]|\d+\.) )", text):
        lines = paragraph.count("\n") + 1
        indented = re.match(r"\s{8,}|\s*>>>|\s*\.\. ", paragraph)
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = re.sub(r"``[^`]*``|`[^`]*`|\$[^$]*\$|:math:`[^`]*`", "CODE", plain)
        plain = " ".join(plain.split())
        table = "====" in paragraph
        if not table and (not indented or "\n" not in paragraph):
            for sentence in re.split(r"(?<=[.!?])[\"”)*]*\s+(?=[\"“(*\[A-Z0-9…])", plain):
                yield offset, sentence
        offset += lines + (1 if "\n\n" in text else 0)


def findings(text: Text) -> Iterator[Finding]:
    """Yield the sentences of a text that break a rule."""
    plain = text.text.strip()
    if text.kind not in ("page", "module") and OPENINGS.match(plain):
        yield Finding(text, "opening", _short(plain))
    searched = re.sub(r"``[^`]*``|`[^`]*`", "CODE", " ".join(plain.split()))
    for phrase in PHRASES:
        if match := re.search(phrase, searched, re.IGNORECASE):
            begin = max(0, match.start() - 30)
            yield Finding(text, "phrase", _short(searched[begin : match.end() + 30]))
    for _, sentence in sentences(text.text):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        if len(words) > LIMIT:
            yield Finding(text, "long", f"{len(words)} words: {_short(sentence)}")
        elif len(words) > WARN:
            yield Finding(text, "warn", f"{len(words)} words: {_short(sentence)}")
    in_docs = text.path.parent == ROOT / "docs" or text.path == ROOT / "README.md"
    if in_docs and text.path.name not in USER_PAGES_EXEMPT and "±" in plain:
        yield Finding(text, "deviation", _short(plain[max(0, plain.index("±") - 30) :]))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else f"{line[:87]}…"


def imperative() -> Iterator[Finding]:
    """Yield the docstrings of functions that do not begin with an imperative verb."""
    folders = [str(SOURCES / name / name) for name in PACKAGES]
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "D401", *folders]
    done = subprocess.run(
        [*command, "--output-format", "json", "--exit-zero"], capture_output=True, check=True
    )
    for entry in json.loads(done.stdout):
        path, row = Path(entry["filename"]), entry["location"]["row"]
        yield Finding(Text(path, row, "docstring", ""), "verb", entry["message"])


def collect() -> list[Finding]:
    """Return the findings of the whole repository."""
    modules = sorted(path for name in PACKAGES for path in (SOURCES / name / name).rglob("*.py"))
    texts = [text for path in modules for text in python_texts(path)]
    skipped = {"build", "install", "log", "node_modules", "results", "reports"}
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    pages += sorted((ROOT / "docs").glob("*.md"))
    pages += sorted(p for p in SOURCES.rglob("README.md") if not skipped & set(p.parts))
    texts += [text for path in pages for text in page_texts(path)]
    return [*(found for text in texts for found in findings(text)), *imperative()]


def main() -> int:
    """Print the findings. Return 1 if a rule has more findings than its baseline."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="print every finding")
    parser.add_argument("--write", action="store_true", help="lower the baseline to the counts")
    parser.add_argument(
        "--only", default="", help="print findings of files whose path has this text"
    )
    options = parser.parse_args()
    found = collect()
    counts = collections.Counter(f"{f.area}.{f.rule}" for f in found)
    baseline = json.loads(BASELINE.read_text("utf-8")) if BASELINE.exists() else {}
    if options.write:
        lower = {
            key: min(count, baseline.get(key, count))
            for key, count in sorted(counts.items())
            if not key.endswith(".warn")
        }
        BASELINE.write_text(json.dumps(lower, indent=2) + "\n", encoding="utf-8")
        baseline = lower
    above = {
        key: (count, baseline.get(key, 0))
        for key, count in counts.items()
        if not key.endswith(".warn") and count > baseline.get(key, 0)
    }
    for finding in found:
        chosen = options.only and options.only in str(finding)
        if chosen or options.all or f"{finding.area}.{finding.rule}" in above:
            print(finding)
    for key, count in sorted(counts.items()):
        allowed = "" if key.endswith(".warn") else f" (allowed: {baseline.get(key, 0)})"
        print(f"{key}: {count}{allowed}")
    for key, allowed in baseline.items():
        if counts[key] < allowed:
            print(f"{key} fell from {allowed} to {counts[key]}: store it with --write")
    if above:
        print(f"above the baseline: {', '.join(sorted(above))}; write these sentences again")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
