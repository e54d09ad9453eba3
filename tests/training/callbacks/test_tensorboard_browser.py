"""TensorBoard itself on a run's files: its server knows every plugin, and a real browser shows the curves."""

import asyncio
import base64
import io
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from scena.training.callbacks.params import TensorBoardParams
from scena.training.trigger import Trigger
from tests.training.toy_runs import train_toy

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 120


@contextmanager
def tensorboard(directory: Path) -> Iterator[str]:
    """A running TensorBoard; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(directory),
        "--port",
        str(port),
        "--load_fast",
        "false",
    ]
    with (directory / "server.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                assert server.poll() is None, (directory / "server.log").read_text()
                try:
                    if fetch(f"{address}/data/runs"):
                        break
                except OSError:
                    pass
                time.sleep(0.3)
            yield address
        finally:
            server.terminate()
            server.wait(20)


def fetch(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=20) as answer:
        return json.loads(answer.read())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("served")
    settings = TensorBoardParams(histograms=Trigger(1))
    train_toy(directory / "run", epochs=12, tensorboard=settings, profile=True, profile_steps=[6, 9])
    with tensorboard(directory) as address:
        yield address


@pytest.mark.long
def test_the_server_has_curves_parameters_hparams_and_the_profile_tab(served: str) -> None:
    assert set(fetch(f"{served}/data/runs")) >= {"run/tensorboard/train", "run/tensorboard/val"}
    until = time.monotonic() + PATIENCE
    active: set[str] = set()
    while time.monotonic() < until and "profile" not in active:
        listing = fetch(f"{served}/data/plugins_listing")
        active = {name for name, entry in listing.items() if entry["enabled"]}
        time.sleep(0.5)
    assert {"scalars", "histograms", "text", "hparams", "profile"} <= active
    tags = fetch(f"{served}/data/plugin/scalars/tags")
    assert set(tags["run/tensorboard/val"]) == {"loss", "acc"}


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)")
def test_a_browser_shows_the_curves(served: str, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
               f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,1000", f"{served}/#timeseries"]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as browser:
        try:
            assert browser.stderr is not None
            listening = next(line for line in browser.stderr if "DevTools listening on" in line)
            port = listening.split("127.0.0.1:")[1].split("/")[0]
            picture = asyncio.run(look(port))
        finally:
            browser.terminate()
            browser.communicate()
    with Image.open(io.BytesIO(picture)) as shot:
        pixels = shot.convert("RGB").getcolors(maxcolors=1_000_000) or []
    coloured = sum(count for count, colour in pixels if max(colour) - min(colour) > 60)
    assert coloured > 100  # the axes are grey, the curves are not


FIND = """[...document.querySelectorAll('line-chart')].filter(
    chart => [...chart.querySelectorAll('path')].some(path => (path.getAttribute('d') || '').length > 40)
             || chart.querySelector('canvas')).length"""


BOX = """(() => { const box = document.querySelector('line-chart').getBoundingClientRect();
    return JSON.stringify({x: box.x, y: box.y, width: box.width, height: box.height}); })()"""


async def look(port: str) -> bytes:
    """Waits, in real time, until there are charts with curves; a picture of the first one."""
    import aiohttp

    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json") as answer:
            pages = [page for page in await answer.json() if page["type"] == "page"]
        async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as connection:
            number = 0

            async def call(method: str, **params: Any) -> Any:
                nonlocal number
                number += 1
                await connection.send_json({"id": number, "method": method, "params": params})
                while True:
                    message = await connection.receive_json()
                    if message.get("id") == number:
                        return message["result"]

            until = time.monotonic() + PATIENCE
            charts = 0
            while time.monotonic() < until and charts < 2:
                await asyncio.sleep(0.5)
                found = await call("Runtime.evaluate", expression=FIND, returnByValue=True)
                charts = found["result"].get("value", 0)
            assert charts >= 2, "TensorBoard shows no curves"
            await asyncio.sleep(1)
            box = (await call("Runtime.evaluate", expression=BOX, returnByValue=True))["result"]["value"]
            # only the inside of a chart: the bars of the page have colours too
            shot = await call("Page.captureScreenshot", format="png", clip={**json.loads(box), "scale": 1})
            return base64.b64decode(shot["data"])
