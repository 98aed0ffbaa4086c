"""Drives a headless Chromium through its debugging pipe: as wide as asked, light or dark."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Longest wait for an answer, s: a guard against hanging, not a measure.
PATIENCE = 60.0


def chromium() -> str | None:
    """Return the path of a Chromium, None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A headless Chromium with one page."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="bridge-chromium-", ignore_cleanup_errors=True)
        ours, theirs = [], []
        for mode in ("rb", "wb"):  # Chromium reads commands from 3 and writes answers to 4
            reading, writing = (_above_nine(end) for end in os.pipe())
            theirs.append(reading if mode == "rb" else writing)
            ours.append(writing if mode == "rb" else reading)
        command = [
            *("bash", "-c", f'exec "$0" "$@" 3<&{theirs[0]} 4>&{theirs[1]}', program),
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
            *("--disable-dev-shm-usage", "--disable-background-networking", "--remote-debugging-pipe"),
            *(f"--user-data-dir={self._profile.name}", "about:blank"),
        ]
        self._process = subprocess.Popen(
            command,
            pass_fds=theirs,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in theirs:
            os.close(end)
        self._out, self._in = os.fdopen(ours[0], "wb"), os.fdopen(ours[1], "rb")
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = next(one for one in self._call("Target.getTargets")["targetInfos"] if one["type"] == "page")[
            "targetId"
        ]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = str(attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.close()  # Chromium ends when its pipe does
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._in.close()
        self._profile.cleanup()

    def open(self, page: Path, *, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        """Load a page from disk, and wait until all its charts are drawn."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.scheme(dark=dark)
        self.events.clear()
        self._call("Page.navigate", url=page.resolve().as_uri())
        self.drawn()

    def scheme(self, *, dark: bool) -> None:
        """Make the system light or dark."""
        value = "dark" if dark else "light"
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def drawn(self) -> None:
        """Wait until all charts are drawn."""
        self.until("document.documentElement?.dataset.charts === 'drawn'")

    def until(self, expression: str) -> Any:
        """Wait until an expression in the page is truthy, and return its value."""
        end = time.monotonic() + PATIENCE
        while not (value := self.value(expression)):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.05)
        return value

    def value(self, expression: str) -> Any:
        """Return the JSON value of an expression in the page."""
        told = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(json.dumps(told["exceptionDetails"]))
        return told["result"].get("value")

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Save what is seen, or the whole page, as PNG."""
        clip = {}
        if whole:
            size = self._call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {**size, "scale": 1}, "captureBeyondViewport": True}
        shot = self._call("Page.captureScreenshot", **clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def move(self, x: float, y: float) -> None:
        """Point somewhere in the window."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def troubles(self) -> list[str]:
        """Return errors in the console, exceptions, and everything that was loaded from elsewhere."""
        found = []
        for event in self.events:
            told = event["params"]
            match event["method"]:
                case "Runtime.exceptionThrown":
                    found.append(json.dumps(told["exceptionDetails"])[:500])
                case "Log.entryAdded" if told["entry"]["level"] == "error":
                    found.append(told["entry"]["text"])
                case "Runtime.consoleAPICalled" if told["type"] in ("error", "assert"):
                    found.append(json.dumps(told["args"])[:500])
                case "Network.requestWillBeSent" if told["request"]["url"].split(":")[0] not in (
                    "file",
                    "data",
                    "blob",
                ):
                    found.append(told["request"]["url"])
        return found

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            told = self._next()
            if told.get("id") == self._number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                result: dict[str, Any] = told["result"]
                return result
            if "method" in told:
                self.events.append(told)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            if not ready:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self._in.fileno(), 1 << 20)
            if not more:
                raise RuntimeError("Chromium ended")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        return told


def _above_nine(end: int) -> int:
    """Move a file descriptor out of the way of those that Chromium wants."""
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return moved
