"""Just enough of the WebDriver protocol to use a page in headless Chromium."""

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
needs_chromium = pytest.mark.skipif(
    shutil.which("chromium") is None or shutil.which("chromedriver") is None,
    reason="Chromium and its driver are not installed: `make test` installs them where it may (root, apt)",
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A session of a browser."""

    def __init__(self, address: str) -> None:
        self._address = address

    def call(self, method: str, path: str, **body: Any) -> Any:
        """One command of the protocol."""
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(
            f"{self._address}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read())["value"]

    def open(self, address: str) -> None:
        """Shows a page."""
        self.call("POST", "/url", url=address)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns; it may be a promise."""
        return self.call("POST", "/execute/sync", script=script, args=arguments)

    def resize(self, width: int, height: int = 1000) -> None:
        """Sets the size of the page itself, in pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("POST", "/goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params=metrics)

    def prefer(self, theme: str) -> None:
        """What the system prefers: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.call("POST", "/goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": features})
        self.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))")

    def screenshot(self) -> bytes:
        """The visible part of the page as a PNG file."""
        return base64.b64decode(self.call("GET", "/screenshot"))

    def click(self, selector: str) -> None:
        """Clicks on an element, which has to be visible."""
        found = self.call("POST", "/element", using="css selector", value=selector)
        self.call("POST", f"/element/{found[ELEMENT]}/click")

    def write(self, selector: str, text: str) -> None:
        """Types into a field."""
        found = self.call("POST", "/element", using="css selector", value=selector)
        self.call("POST", f"/element/{found[ELEMENT]}/value", text=text)

    def choose_file(self, selector: str, path: Path) -> None:
        """Puts a file into a file input."""
        self.write(selector, str(path))

    def text(self, selector: str, wanted: str) -> str:
        """The text of an element, once it contains what is wanted."""
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        shown = ""
        for _ in range(200):
            shown = self.run(script, selector)
            if wanted in shown:
                break
            time.sleep(0.05)
        return shown


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A headless browser with an empty profile."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(200):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/status", timeout=5).close()
                break
            time.sleep(0.05)
        options = {"binary": shutil.which("chromium"), "args": [*FLAGS.split(), f"--user-data-dir={profile}"]}
        wishes = {"alwaysMatch": {"goog:chromeOptions": options}}
        session = Browser(address).call("POST", "/session", capabilities=wishes)["sessionId"]
        opened = Browser(f"{address}/session/{session}")
        try:
            yield opened
        finally:
            opened.call("DELETE", "")
    finally:
        driver.terminate()
        driver.wait(timeout=30)
