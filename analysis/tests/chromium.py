# SPDX-License-Identifier: BSD-3-Clause
"""A headless Chromium on a pipe: the DevTools protocol, as much of it as the tests need. No network, no port."""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)
_TIMEOUT_S = 120.0
_ICON = "/favicon.ico"


def find() -> str | None:
    """Return a Chromium of this machine, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    return None


class Browser:
    """One browser with one page."""

    def __init__(self, program: str, *, prefix: Sequence[str] = (), may_reach: str = "") -> None:
        """Start it. prefix: a command that runs it elsewhere; may_reach: the one address that is not hidden from it."""
        self._folder = tempfile.mkdtemp(prefix="cadge-chromium-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        script = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        flags = [f"{one}, EXCLUDE {may_reach}" if may_reach and "resolver" in one else one for one in FLAGS]
        self._process = subprocess.Popen(
            ["bash", "-c", script, *prefix, program, *flags, f"--user-data-dir={self._folder}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._folder},
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._read, selectors.EVENT_READ)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait(10)
        self._selector.close()
        os.close(self._read)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _message(self) -> dict[str, Any]:
        deadline = time.monotonic() + _TIMEOUT_S
        while b"\0" not in self._buffer:
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise RuntimeError("the browser ended")
            self._buffer += piece
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        return message

    def send(self, method: str, **params: object) -> dict[str, Any]:
        """Call a method and return its result; events that come meanwhile are kept."""
        self._number += 1
        call: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._write, json.dumps(call).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    def open(
        self,
        path: Path,
        *,
        width: int,
        height: int = 900,
        dark: bool = False,
        scripts: bool = True,
        fragment: str = "",
    ) -> None:
        """Load a file at a size of window; with `scripts` off the page's own scripts do not run.

        fragment: "#" and what follows it. Another fragment of the page that is open loads nothing.
        """
        self.events.clear()
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._load(path.resolve().as_uri() + fragment)

    def visit(self, address: str) -> None:
        """Load an address of the web."""
        self.events.clear()
        self._load(address)

    def _load(self, address: str) -> None:
        self.send("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def value(self, expression: str) -> Any:  # noqa: ANN401 - whatever the page says
        """Return the value of a JavaScript expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def picture(self, out: Path, *, whole: bool = False, clip: tuple[float, float, float, float] | None = None) -> None:
        """Write a PNG of the window, of the whole page, or of a rectangle (x, y, width, height) of it."""
        options: dict[str, Any] = {"format": "png", "captureBeyondViewport": whole or clip is not None}
        if clip is not None:
            options["clip"] = dict(zip(("x", "y", "width", "height"), clip, strict=True)) | {"scale": 1}
        elif whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {**size, "scale": 1}
        out.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", **options)["data"]))

    def complaints(self) -> list[str]:
        """Return every console error, exception and log entry since the page was opened."""
        self.value("1")
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if (method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert")) or (
                method == "Runtime.exceptionThrown"
            ):
                found.append(json.dumps(params))
            elif method == "Log.entryAdded":
                found.append(str(params["entry"].get("text")))
        return found

    def failures(self) -> list[str]:
        """Return what the page asked for in vain, each with its address or error; not the icon that browsers want."""
        self.value("1")
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Network.responseReceived" and params["response"]["status"] >= 400:
                if params["response"]["url"].endswith(_ICON):
                    continue
                found.append(f"{params['response']['status']} {params['response']['url']}")
            elif method == "Network.loadingFailed":
                found.append(str(params["errorText"]))
        return found

    def requests(self) -> list[str]:
        """Return the address of everything that the page asked for, itself included."""
        self.value("1")
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
            and not event["params"]["request"]["url"].endswith(_ICON)
        ]
