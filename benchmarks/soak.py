"""Minutes of mixed load with faults on `scena serve`: is anything lost that was accepted, and does memory stay flat?

    python -m benchmarks.soak [--minutes 10] [--clients 12] [--runtime onnx]

Clients send images, JSON in rows and columns, and forms; others send nonsense, too much, half a request, or leave before the answer.
Every few seconds the export is replaced by another model, by a damaged one too. Each answer is compared with those of the models that
were in service. At the end the service is stopped under load. The status is 1 if a request got no answer or a wrong one, or if memory
grew by more than 5 percent between the first and the last third.
"""

import asyncio
import base64
import collections
import io
import json
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from benchmarks.options import read_options
from benchmarks.serving import EXPORT
from scena.params import Params, param
from scena.storage.durable import replace_directory

PATH = "/v1/models/mobilenet:predict"
GROWTH = 1.05
"""The memory of the last third may be so many times that of the first."""


class Options(Params):
    """How long, and how much."""

    minutes: float = param(10.0, gt=0, help="how long the load lasts")
    clients: int = param(12, ge=1, help="clients at the same time")
    runtime: str = param("onnx", choices=["onnx", "keras"], help="what runs the model")
    replace_every: float = param(10.0, gt=0, help="seconds between replacements of the export")
    seed: int = param(0, help="of the clients' choices")
    exports: Path | None = param(None, help="where the exports are, or are made and kept (default: made and removed)")


class Kind(NamedTuple):
    """A kind of request."""

    kind: str
    body: bytes
    statuses: set[int]
    images: int = 0
    """How many images of it are predicted."""


def main() -> int:
    """Runs the load and prints what happened."""
    options = read_options(Options, __doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model in ("first", "second"):
            kept = (options.exports or folder) / model
            if not kept.exists():
                prepare(kept, options.runtime)
            if options.exports:
                shutil.copytree(kept, folder / model)
        shutil.copytree(folder / "first", folder / "damaged")
        for file in ("model.onnx", "model.keras"):
            if (folder / "damaged" / file).exists():
                (folder / "damaged" / file).write_bytes(b"damaged")
        shutil.copytree(folder / "first", folder / "served")
        image = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype("uint8")
        with (folder / "log").open("wb") as log:
            limits = ["--body_timeout", "2", "--reload", "0.5", "--max_queue", "64", "--max_body", "200000"]
            command = [sys.executable, "-m", "scena", "serve", str(folder / "served"), "--port", "0", *limits]
            process = subprocess.Popen([*command, "--runtime", options.runtime], stderr=log, stdout=log)
        try:
            return asyncio.run(Soak(options, folder, process, image).run())
        finally:
            process.kill()
            process.wait()
            reports = [line for line in (folder / "log").read_text().splitlines() if "was replaced" in line]
            print(f"{len(reports)} lines of the service about replaced exports, for example: {reports[-1:]}")


def prepare(directory: Path, runtime: str) -> None:
    """An export with random weights."""
    scenario = ("benchmarks.mobilenet", "MobileNetScenario", str(directory))
    commands = [["-c", EXPORT, *scenario]]
    if runtime == "onnx":
        commands.append(["-m", "scena", "export", str(directory), "--format", "onnx"])
    for command in commands:
        subprocess.run([sys.executable, *command], check=True, capture_output=True)


def kinds(image: np.ndarray) -> list[Kind]:
    """What is sent."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    png = file.getvalue()
    b64 = {"b64": base64.b64encode(png).decode()}
    array = image.tolist()

    def as_json(value: Any, statuses: set[int], images: int = 0) -> Kind:
        return Kind("application/json", json.dumps(value).encode(), statuses, images)

    def form(content: bytes, statuses: set[int], images: int = 0) -> Kind:
        parts = b"".join(
            b'--x\r\nContent-Disposition: form-data; name="f%d"; filename="a.png"\r\n\r\n%s\r\n' % (number, content)
            for number in range(images or 1)
        )
        return Kind("multipart/form-data; boundary=x", parts + b"--x--\r\n", statuses, images)

    busy = {200, 429}
    return [
        *[Kind("image/png", png, busy, 1)] * 4,
        as_json({"instances": [array]}, busy, 1),
        as_json({"instances": [{"image": array}, b64, array]}, busy, 3),
        as_json({"inputs": {"image": [array, b64]}}, busy, 2),
        form(png, busy, 2),
        as_json({"instances": [b64] * 40}, busy, 40),
        as_json({"instances": [[1.0]]}, {400}),
        as_json({"instances": []}, {400}),
        Kind("application/json", b"{nonsense", {400}),
        Kind("image/png", png[: len(png) // 2], {400}),
        Kind("image/png", b"x" * 300_000, {413}),
        form(b"no image", {400}),
    ]


class Soak:
    """Clients, faults and what they found."""

    def __init__(self, options: Options, folder: Path, process: "subprocess.Popen[bytes]", image: np.ndarray) -> None:
        self.options = options
        self.folder = folder
        self.process = process
        self.kinds = kinds(image)
        self.counts: collections.Counter[str] = collections.Counter()
        self.problems: list[str] = []
        self.memory: list[float] = []
        self.ending = False
        self.answers: list[np.ndarray] = []
        self.port = 0

    async def run(self) -> int:
        """The whole run."""
        log = self.folder / "log"
        while "http://127.0.0.1:" not in (text := log.read_text()):
            if self.process.poll() is not None:
                raise SystemExit(text)
            await asyncio.sleep(0.1)
        self.port = int(text.split("http://127.0.0.1:")[1].split()[0])
        await self.learn_answers()
        self.counts.clear()
        self.until = time.monotonic() + 60 * self.options.minutes
        clients = [self.client(random.Random(f"{self.options.seed} {n}")) for n in range(self.options.clients)]
        faults = [self.rude_client(random.Random(f"{self.options.seed} rude {n}")) for n in range(2)]
        everybody = asyncio.gather(*clients, *faults)
        await asyncio.gather(self.replace(), self.watch())
        self.ending = True
        self.process.send_signal(signal.SIGTERM)  # the clients go on
        await asyncio.to_thread(self.process.wait, 60)
        await everybody
        return self.report()

    async def learn_answers(self) -> None:
        """What each model answers; the second takes over meanwhile."""
        for model in ("first", "second"):
            self.put(model)
            before = len(self.answers)
            for _ in range(600):
                answer = np.array(await self.ask_one(), "float32")
                if not any(np.allclose(answer, known, atol=1e-5) for known in self.answers):
                    self.answers.append(answer)
                if len(self.answers) > before:
                    break
                await asyncio.sleep(0.1)
        assert len(self.answers) == 2, "the second model did not take over"

    async def ask_one(self) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        _, body = await exchange(reader, writer, self.kinds[0])
        writer.close()
        return json.loads(body)["predictions"][0]

    def put(self, model: str) -> None:
        """Replaces the export, as a training does."""
        replace_directory(
            self.folder / "served", lambda aside: shutil.copytree(self.folder / model, aside, dirs_exist_ok=True)
        )

    async def client(self, rng: random.Random) -> None:
        """Sends one request after the other and checks what comes back."""
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while not self.ending or self.process.poll() is None:
            kind = rng.choice(self.kinds)
            try:
                streams = streams or await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                if self.ending:
                    return
                self.problem("a connection was refused")
                await asyncio.sleep(0.1)
                continue
            try:
                status, body = await asyncio.wait_for(exchange(*streams, kind), 60)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                streams[1].close()
                streams = None
                if self.ending and isinstance(error, asyncio.IncompleteReadError | ConnectionError):
                    self.counts["closed at the end"] += 1
                    continue
                self.problem(f"lost: {type(error).__name__}")
                continue
            self.check(kind, status, body)
            if status == 413 or self.ending:  # the service closes the connection
                streams[1].close()
                streams = None
            await asyncio.sleep(rng.random() * 0.05)
        if streams:
            streams[1].close()

    def check(self, kind: Kind, status: int, body: bytes) -> None:
        """Counts an answer; anything unexpected is a problem."""
        self.counts[f"status {status}"] += 1
        if status not in kind.statuses | ({503} if self.ending else set()):
            self.problem(f"status {status} instead of {kind.statuses}: {body[:200]!r}")
        if status != 200:
            return
        answer = json.loads(body)
        rows = answer.get("predictions", answer.get("outputs"))
        if len(rows) != kind.images or not all(self.is_known(row) for row in rows):
            self.problem(f"a wrong answer to {kind.kind}: {body[:200]!r}")
        self.counts["samples"] += len(rows)

    def is_known(self, row: Any) -> bool:
        return any(np.allclose(row, known, atol=1e-4) for known in self.answers)

    async def rude_client(self, rng: random.Random) -> None:
        """Nonsense, half requests, and clients that do not wait."""
        good = request(self.kinds[0])
        ways: dict[str, Callable[[], bytes]] = {
            "half a request": lambda: good[: rng.randrange(1, len(good))],
            "left before the answer": lambda: good,
            "nonsense": lambda: rng.randbytes(200) + b"\r\n\r\n",
        }
        while not self.ending:
            name = rng.choice(list(ways))
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(ways[name]())
                await writer.drain()
                await asyncio.sleep(rng.choice([0, 0, 0.02, 3]))  # the last one is over --body_timeout
                writer.close()
                self.counts[name] += 1
            except OSError:
                pass
            await asyncio.sleep(rng.random() * 0.2)

    async def replace(self) -> None:
        """Other models, and damaged ones, in the place of the export."""
        models = ["first", "second", "damaged"]
        number = 0
        while time.monotonic() < self.until:
            self.put(models[number % 3])
            number += 1
            self.counts[f"export replaced: {models[number % 3 - 1]}"] += 1
            await asyncio.sleep(min(self.options.replace_every, max(0.0, self.until - time.monotonic())))

    async def watch(self) -> None:
        """Memory of the service."""
        while time.monotonic() < self.until:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            self.memory.append(int(status.split("VmRSS:")[1].split()[0]) / 1000)
            await asyncio.sleep(1)

    def problem(self, text: str) -> None:
        """Something that must not happen."""
        self.counts["problems"] += 1
        if len(self.problems) < 10:
            self.problems.append(text)

    def report(self) -> int:
        """Prints the counts."""
        for name, count in sorted(self.counts.items()):
            print(f"{count:>9} {name}")
        third = max(1, len(self.memory) // 3)
        early, late = statistics.median(self.memory[:third]), statistics.median(self.memory[-third:])
        minutes = [statistics.median(self.memory[first : first + 60]) for first in range(0, len(self.memory), 60)]
        print(f"memory by minutes: {', '.join(f'{value:.0f}' for value in minutes)} MB")
        print(f"memory: {early:.0f} MB in the first third, {late:.0f} MB in the last; most {max(self.memory):.0f} MB")
        print(f"the service ended with status {self.process.returncode}")
        for text in self.problems:
            print(f"PROBLEM {text}")
        return 0 if not self.problems and late <= GROWTH * early else 1


def request(kind: Kind) -> bytes:
    """The bytes of a request."""
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: soak\r\nContent-Type: {kind.kind}\r\nContent-Length: {len(kind.body)}\r\n\r\n"
    )
    return head.encode() + kind.body


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: Kind) -> tuple[int, bytes]:
    """Sends a request; the status and the body of its answer."""
    writer.write(request(kind))
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return int(head[9:12]), await reader.readexactly(length)


if __name__ == "__main__":
    sys.exit(main())
