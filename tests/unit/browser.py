# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests: headless Chromium, spoken to over a pipe in its own protocol (Chrome DevTools)."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

CHROMIUM: Final = "chromium"
#: No sandbox, for tests run as root; what the browser itself asks of the network is not ours to judge.
_OPTIONS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip


def _pipe() -> tuple[int, int]:
    """Both ends of a pipe, beyond the descriptors that the browser gets them as."""
    low = os.pipe()
    first, second = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    return first, second


class Browser:
    """One tab. What pages said on the console, threw, or asked for is kept."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self._undo = ExitStack()
        self._number = 0
        self._rest = b""
        self._session = ""

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            profile = undo.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            theirs_in, self._out = _pipe()
            self._in, theirs_out = _pipe()
            undo.callback(os.close, self._out)
            undo.callback(os.close, self._in)
            # The protocol's descriptors are 3 and 4.
            command = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", CHROMIUM, *_OPTIONS]
            process = subprocess.Popen(
                [*command, f"--user-data-dir={profile}", "about:blank"],
                pass_fds=(theirs_in, theirs_out),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            undo.callback(process.wait)
            undo.callback(process.kill)
            os.close(theirs_in)
            os.close(theirs_out)
            target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
            attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
            undo.callback(self._close)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def _close(self) -> None:
        with suppress(OSError, EOFError):
            self.call("Browser.close")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One call; events that come meanwhile are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session and not method.startswith(("Browser.", "Target.")):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._number:
                assert "error" not in found, f"{method}: {found['error']}"
                result: dict[str, Any] = found["result"]
                return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            if not more:
                raise EOFError("the browser ended")
            self._rest += more
        line, self._rest = self._rest.split(b"\0", 1)
        event: dict[str, Any] = json.loads(line)
        self._keep(event.get("method", ""), event.get("params", {}))
        return event

    def _keep(self, method: str, told: dict[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(told["args"]))
        elif method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(told["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.said.append(told["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])

    def open(self, path: Path, width: int, scheme: Literal["light", "dark"] = "light") -> None:
        """Open a file in a window of this width, phones' with touch, and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.as_uri())
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def ask(self, expression: str) -> Any:
        """The value of an expression of the page's script."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, *, whole: bool) -> bytes:
        """The whole page as PNG, or its first screen."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(taken["data"])

    def paper(self) -> bytes:
        """The page as it is printed, as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"])

    def point_at(self, x: float, y: float) -> None:
        """Move the pointer to a place of the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
