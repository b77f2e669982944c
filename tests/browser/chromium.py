"""A headless Chromium controlled by the DevTools protocol through two pipes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

VARIABLE = "PYTEST_LOOP_CHROMIUM"
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "about:blank",
)


class Page:
    """One page of the browser; errors in its console and requests are recorded."""

    def __init__(self, sending: BinaryIO, receiving: BinaryIO) -> None:
        self._sending = sending
        self._receiving = receiving
        self._number = 0
        self._session = ""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = next(info for info in self.call("Target.getTargets")["targetInfos"] if info["type"] == "page")
        session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        self._sending.write(json.dumps(message).encode() + b"\0")
        self._sending.flush()
        return self._wait_for(lambda message: message.get("id") == self._number)["result"]

    def _wait_for(self, is_expected: Any) -> Any:
        while True:
            message = json.loads(self._read_message())
            self._record(message)
            if "error" in message:
                raise RuntimeError(message["error"])
            if is_expected(message):
                return message

    def _read_message(self) -> bytes:
        data = bytearray()
        while (byte := self._receiving.read(1)) not in (b"\0", b""):
            data += byte
        return bytes(data)

    def _record(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(json.dumps(params))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.call("Page.navigate", url=path.as_uri())
        self._wait_for(lambda message: message.get("method") == "Page.loadEventFired")

    def set_size(self, width: int, height: int) -> None:
        """Set the size of the viewport; a narrow one is a phone."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def set_color_scheme(self, scheme: str) -> None:
        """Set the system's color scheme: light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            extra = text if kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes[key], **extra)

    def take_screenshot(self, path: Path, *, beyond: bool = True) -> None:
        """Write a picture of the page; with `beyond`, also of what is outside of the window."""
        screenshot = self.call("Page.captureScreenshot", captureBeyondViewport=beyond)
        path.write_bytes(base64.b64decode(screenshot["data"]))


@contextmanager
def start_chromium(program: str, folder: Path) -> Iterator[Page]:
    """Start a browser with its own profile; it ends with the block."""
    child_read, write_end = os.pipe()
    read_end, child_write = os.pipe()
    command = [program, *_ARGUMENTS[:-1], f"--user-data-dir={folder}", _ARGUMENTS[-1]]
    # The browser reads from descriptor 3 and writes to 4.
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{child_read} 4>&{child_write}', "chromium", *command],
        pass_fds=(child_read, child_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(child_read)
    os.close(child_write)
    try:
        with os.fdopen(write_end, "wb") as sending, os.fdopen(read_end, "rb") as receiving:
            page = Page(sending, receiving)
            yield page
            sending.write(json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
    finally:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
