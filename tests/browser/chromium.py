"""A headless Chromium, spoken to by the DevTools protocol through two pipes."""

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
    """One page of the browser; what its console complains about is kept."""

    def __init__(self, sending: BinaryIO, receiving: BinaryIO) -> None:
        self._sending = sending
        self._receiving = receiving
        self._number = 0
        self._session = ""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = next(one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page")
        opened = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = opened["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol; gives its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        self._sending.write(json.dumps(message).encode() + b"\0")
        self._sending.flush()
        return self._until(lambda said: said.get("id") == self._number)["result"]

    def _until(self, fits: Any) -> Any:
        while True:
            said = json.loads(self._message())
            self._note(said)
            if "error" in said:
                raise RuntimeError(said["error"])
            if fits(said):
                return said

    def _message(self) -> bytes:
        data = bytearray()
        while (byte := self._receiving.read(1)) not in (b"\0", b""):
            data += byte
        return bytes(data)

    def _note(self, said: dict[str, Any]) -> None:
        method, params = said.get("method"), said.get("params", {})
        if method in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(params))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path: Path) -> None:
        """Go to a file, and wait until it is loaded."""
        self.ask("Page.navigate", url=path.as_uri())
        self._until(lambda said: said.get("method") == "Page.loadEventFired")

    def size(self, width: int, height: int) -> None:
        """The size of what can be seen; a narrow one is a telephone."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def prefer(self, scheme: str) -> None:
        """What the person has chosen in the system: light or dark."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """A key of the keyboard, as a person would press it."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            more = text if kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes[key], **more)

    def picture(self, path: Path, *, whole: bool = True) -> Path:
        """A screenshot."""
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))
        return path


@contextmanager
def chromium(program: str, folder: Path) -> Iterator[Page]:
    """A browser with a profile of its own, which ends with the block."""
    there, write_end = os.pipe()
    read_end, back = os.pipe()
    words = [program, *_ARGUMENTS[:-1], f"--user-data-dir={folder}", _ARGUMENTS[-1]]
    # The browser reads from descriptor 3 and writes to 4.
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "chromium", *words],
        pass_fds=(there, back),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(there)
    os.close(back)
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
