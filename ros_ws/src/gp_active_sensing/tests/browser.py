"""A headless Chromium driven over a pipe: just enough to load a page, ask it things, look at it.

No dependency: the browser's own protocol, JSON messages that end in NUL, on file descriptors 3
and 4. Also used by ``docs/images/make_pictures.py`` and the benchmarks.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0  # s
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--hide-scrollbars", "--mute-audio", "--remote-debugging-pipe",
)  # fmt: skip
# Bash and dash differ in which descriptors they can duplicate; both can open a file.
_START = 'exec "$@" 3</dev/fd/{read} 4>/dev/fd/{write}'


READY = "document.documentElement.dataset.ready"
"""Content of a page after it was drawn."""
TITLES = (
    "[...document.querySelectorAll('h3')].filter((h) => h.offsetParent).map((h) => h.textContent)"
)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
Open = Callable[..., "Page"]


class BrowserError(RuntimeError):
    """The browser did not start, did not answer, or refused."""


def find_browser() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser(contextlib.AbstractContextManager["Browser"]):
    """A browser with a profile of its own, or one on PATH; ends what it started."""

    def __init__(self, profile: Path, executable: str | None = None) -> None:
        executable = executable or find_browser()
        if executable is None:
            message = f"no browser on PATH; looked for {', '.join(NAMES)}"
            raise BrowserError(message)
        profile.mkdir(parents=True, exist_ok=True)
        self._said = profile / "stderr.txt"
        self._numbers = itertools.count(1)
        self._answers: dict[int, dict[str, Any]] = {}
        self.pages: dict[str, Page] = {}
        self._rest = b""
        ours_read, theirs_write = _pipe()
        theirs_read, ours_write = _pipe()
        self._read, self._write = ours_read, ours_write
        with self._said.open("wb") as stderr:
            self._process = subprocess.Popen(
                [
                    "/bin/sh", "-c", _START.format(read=theirs_read, write=theirs_write), "sh",
                    executable, *FLAGS, f"--user-data-dir={profile}", "about:blank",
                ],
                pass_fds=(theirs_read, theirs_write),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )  # fmt: skip
        os.close(theirs_read)
        os.close(theirs_write)
        try:
            self.version = str(self.call("Browser.getVersion")["product"])
        except BrowserError:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def page(self, **looks: Any) -> Page:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        answer = self.call("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self, str(target), str(answer["sessionId"]))
        self.pages[page.session] = page
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.look(**looks)
        return page

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; BrowserError if it is refused or not answered."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode("utf-8") + b"\0"
        try:
            while data:
                data = data[os.write(self._write, data) :]
        except BrokenPipeError as error:
            raise self._failure(method, "it has ended") from error
        deadline = time.monotonic() + PATIENCE
        while number not in self._answers:
            self._receive(method, deadline)
        answer = self._answers.pop(number)
        if "error" in answer:
            text = f"{method}: {answer['error'].get('message')}"
            raise BrowserError(text)
        return dict(answer["result"])

    def wait(self, seconds: float) -> None:
        """Take in what the browser says during so many seconds."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._read], [], [], left)[0]:
                self._take_in("waiting")

    def close(self) -> None:
        if self._process.poll() is None:
            try:
                os.write(self._write, b'{"id": 0, "method": "Browser.close"}\0')
                self._process.wait(PATIENCE)
            except (OSError, subprocess.TimeoutExpired):
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(PATIENCE)
        for descriptor in (self._read, self._write):
            if descriptor >= 0:
                os.close(descriptor)
        self._read = self._write = -1

    def _receive(self, what: str, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self._read], [], [], left)[0]:
            raise self._failure(what, f"no answer within {PATIENCE:g} s")
        self._take_in(what)

    def _take_in(self, what: str) -> None:
        data = os.read(self._read, 1 << 20)
        if not data:
            raise self._failure(what, "it has ended")
        *whole, self._rest = (self._rest + data).split(b"\0")
        for item in whole:
            message = json.loads(item)
            if "id" in message:
                self._answers[message["id"]] = message
            elif (page := self.pages.get(message.get("sessionId", ""))) is not None:
                page.take(message["method"], message.get("params", {}))

    def _failure(self, what: str, why: str) -> BrowserError:
        said = self._said.read_text(errors="replace")[-2000:] if self._said.exists() else ""
        return BrowserError(f"browser: {what}: {why}\n{said}".rstrip())


class Page:
    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self.browser = browser
        self.target = target
        self.session = session
        self.complaints: list[str] = []
        """Console errors and warnings, exceptions, refused or failed loads."""
        self.requests: list[str] = []
        """Addresses asked for, the page's own left out."""
        self._own = ""

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def look(
        self, width: int = 1200, height: int = 900, *, dark: bool = False, scale: float = 1.0
    ) -> None:
        """Set the size of the window in CSS pixels, device pixels a CSS pixel, and the theme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=scale, mobile=width < 600,
        )  # fmt: skip
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])

    def open(self, path: Path, fragment: str = "", *, ready: str = "true") -> float:
        self._own = path.resolve().as_uri()
        started = time.monotonic()
        answer = self.call("Page.navigate", url=self._own + fragment)
        if answer.get("errorText"):
            message = f"{path}: {answer['errorText']}"
            raise BrowserError(message)
        self.until(f"document.readyState === 'complete' && Boolean({ready})")
        return time.monotonic() - started

    def until(self, expression: str, patience: float = PATIENCE) -> None:
        """Wait until an expression holds; else BrowserError with the page's complaints."""
        deadline = time.monotonic() + patience
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                message = f"not within {patience:g} s: {expression}; {self.complaints}"
                raise BrowserError(message)
            self.browser.wait(0.02)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, of a promise its result; BrowserError if it throws."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            message = f"{expression}: {_thrown(answer['exceptionDetails'])}"
            raise BrowserError(message)
        return answer["result"].get("value")

    def key(self, key: str) -> None:
        """Press and release a key, such as ``ArrowLeft``."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def mouse(self, x: float, y: float, *, click: bool = False) -> None:
        """Move the mouse to a point of the window, and click there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, file: Path, area: tuple[float, float, float, float] | None = None) -> Path:
        """Write a PNG of an area of the page (x, y, width, height), or of all of it."""
        if area is None:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            area = (0.0, 0.0, size["width"], size["height"])
        clip = dict(zip(("x", "y", "width", "height"), area, strict=True)) | {"scale": 1}
        answer = self.call(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        file.write_bytes(base64.b64decode(answer["data"]))
        return file

    def take(self, method: str, event: dict[str, Any]) -> None:
        """Take in an event."""
        match method:
            case "Runtime.consoleAPICalled":
                if event["type"] in ("error", "warning", "assert"):
                    words = [str(a.get("value", a.get("description", ""))) for a in event["args"]]
                    self.complaints.append(f"console {event['type']}: {' '.join(words)}")
            case "Runtime.exceptionThrown":
                self.complaints.append(_thrown(event["exceptionDetails"]))
            case "Log.entryAdded":
                entry = event["entry"]
                if entry["level"] in ("error", "warning"):
                    self.complaints.append(f"{entry['source']} {entry['level']}: {entry['text']}")
            case "Network.requestWillBeSent":
                url = str(event["request"]["url"])
                if url.split("#")[0] != self._own:
                    self.requests.append(url)

    def close(self) -> None:
        self.browser.pages.pop(self.session, None)
        self.browser.call("Target.closeTarget", targetId=self.target)


def _pipe() -> tuple[int, int]:
    """Return a pipe whose descriptors are out of the way of 3 and 4."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def _thrown(details: dict[str, Any]) -> str:
    exception = details.get("exception", {})
    return str(exception.get("description") or exception.get("value") or details.get("text"))
