"""Headless Chromium over its debugging pipe: no driver, no websocket, no dependency.

Commands and answers are JSON, separated by NUL, on the browser's file descriptors 3 and 4. As a script it takes a
picture of a page::

    python tests/support/chromium.py leaderboards/index.html page.png --width 1400 --height 1000 --dark
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PLACE_PIPES = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
_KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "End": 35, "Home": 36, " ": 32}
_KEYS |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def find_chromium() -> str | None:
    """The browser's path; None when there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(Exception):
    """The browser did not do what was asked."""


class Chromium:
    """A browser with one page. ``problems`` gathers exceptions and console errors, ``requests`` whatever was asked of
    a network or file system."""

    def __init__(self, patience: float = 600.0) -> None:
        binary = find_chromium()
        if binary is None:
            raise BrowserError(f"none of {', '.join(NAMES)} is on the PATH")
        self.patience = patience
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        self._profile = tempfile.TemporaryDirectory(prefix="llpbench-chromium-", ignore_cleanup_errors=True)
        child_in, self._out = _high_pipe()
        self._in, child_out = _high_pipe()
        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}", "--no-sandbox"]
        flags += ["--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions"]
        flags += ["--disable-background-networking", "--hide-scrollbars", "--force-color-profile=srgb"]
        command = [sys.executable, "-c", _PLACE_PIPES, str(child_in), str(child_out), binary, *flags]
        self._process = subprocess.Popen(
            command, pass_fds=(child_in, child_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(child_in)
        os.close(child_out)
        self._session = ""
        try:
            target = self.send("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
                self.send(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and forget its profile."""
        try:
            self._session = ""
            self.send("Browser.close")
            self._process.wait(timeout=20)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    # -- the protocol --------------------------------------------------------------------------------------------------

    def send(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        view = memoryview(json.dumps(message).encode() + b"\0")
        while view:
            view = view[os.write(self._out, view) :]
        until = time.monotonic() + self.patience
        while True:
            answer = self._next(until, method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def wait_for(self, event: str) -> None:
        """Wait until the page has sent an event since it was last asked to go somewhere."""
        until = time.monotonic() + self.patience
        while not any(e.get("method") == event for e in self._events):
            self._next(until, event)

    def _next(self, until: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            chunk = os.read(self._in, 1 << 16) if ready else b""
            if not chunk:
                raise BrowserError(f"{what}: {'the browser is gone' if ready else 'no answer'}")
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        event, params = message.get("method"), message.get("params", {})
        self._events.append(message if event else {})
        if event == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(str(details.get("exception", {}).get("description") or details["text"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(str(params["entry"]["text"]))
        elif event == "Runtime.consoleAPICalled":
            self.problems.append(f"console.{params['type']}: {params['args']}")
        elif event == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog: {params['message']}")
        elif event == "Network.requestWillBeSent" and not params["request"]["url"].startswith("data:"):
            self.requests.append(str(params["request"]["url"]))

    # -- what tests do -------------------------------------------------------------------------------------------------

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file, anew."""
        self.send("Page.navigate", url="about:blank")
        self.problems.clear()
        self.requests.clear()
        self._events.clear()
        self.send("Page.navigate", url=page.resolve().as_uri() + fragment)
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, expression: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(str(details.get("exception", {}).get("description") or details["text"]))
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + self.patience
        while not self.run(expression):
            if time.monotonic() > end:
                raise BrowserError(f"never true: {expression}")
            time.sleep(0.02)

    def press(self, key: str, **held: bool) -> None:
        """Press a key; ``shift=True`` holds one."""
        code = {"Enter": "\r", " ": " "}.get(key)
        common = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": _KEYS[key],
            "modifiers": 8 if held.get("shift") else 0,
        }
        self.send("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": code} if code else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """A real click in the middle of an element, which must be what is really there."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', inline: 'center'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def size(self, width: int, height: int = 900, scale: float = 1.0) -> None:
        """The size of the window, in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)

    def media(self, scheme: str = "light", medium: str = "") -> None:
        """Light or dark; screen or print."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.send("Emulation.setEmulatedMedia", media=medium, features=features)

    def scripts(self, allowed: bool) -> None:
        """Whether pages may run scripts."""
        self.send("Emulation.setScriptExecutionDisabled", value=not allowed)

    def picture(self, path: Path, whole: bool = False, element: str = "") -> None:
        """A PNG of the window, of the whole page, or of the first element that a selector finds."""
        where: dict[str, Any] = {}
        if element:
            box = self.run(
                f"(() => {{ const r = document.querySelector({json.dumps(element)})?.getBoundingClientRect();"
                " return r && {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}; })()"
            )
            if box is None:
                raise BrowserError(f"the page has no element {element!r}")
            where = {"clip": box}
        beyond = whole or bool(element)
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=beyond, **where)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, path: Path) -> None:
        """The page as printed."""
        answer = self.send(
            "Page.printToPDF", printBackground=True, preferCSSPageSize=False, paperWidth=8.27, paperHeight=11.69
        )
        path.write_bytes(base64.b64decode(answer["data"]))

    def accessible(self) -> list[dict[str, str]]:
        """Role and name of everything assistive technology is told about."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        fields = ("role", "name", "description")
        return [{f: str((n.get(f) or {}).get("value") or "") for f in fields} for n in nodes if not n.get("ignored")]


def _high_pipe() -> tuple[int, int]:
    """A pipe whose ends lie above the descriptors that the child moves them to."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


def main() -> None:
    """Take a picture of a page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("output", type=Path, help="a .png, or a .pdf for the printed page")
    parser.add_argument("--fragment", default="", help="state of the page, for example '#dataset=adult&rule=instances'")
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, default=1000)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--whole", action="store_true", help="the whole page, not only the window")
    parser.add_argument("--element", default="", help="only what this CSS selector finds first")
    given = parser.parse_args()
    with Chromium() as browser:
        browser.size(given.width, given.height, given.scale)
        browser.media("dark" if given.dark else "light")
        browser.open(given.page, given.fragment)
        if given.output.suffix == ".pdf":
            browser.pdf(given.output)
        else:
            browser.picture(given.output, whole=given.whole, element=given.element)
        if browser.problems:
            sys.exit("\n".join(browser.problems))


if __name__ == "__main__":
    main()
