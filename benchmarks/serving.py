"""Requests per second of `scena serve` with and without dynamic batching.

    python -m benchmarks.serving [--model tutorial | mobilenet] [--seconds 3] [--clients 16] [--rounds 7]

Serves the tutorial's CNN or MobileNetV2 (with random weights, which do not change the speed), and lets clients in a process of their
own send pictures. The two services take turns, so that a busy machine disturbs both alike.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

BARS = {"tutorial": 2.0, "mobilenet": 3.0}
"""Batching must give at least so many times the throughput of one by one."""


def main() -> int:
    """Prints both throughputs, their ratio and the slowest answers; the status is 1 below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--model", choices=BARS, default="tutorial")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        exported = export(arguments.model, Path(folder) / "export")
        picture = draw(Path(folder) / "picture.png")
        services = {size: start(exported, size, Path(folder)) for size in (1, 32)}
        found: dict[int, list[dict[str, float]]] = {size: [] for size in services}
        try:
            for _ in range(arguments.rounds):
                for size, (_, port) in services.items():
                    found[size].append(load(arguments.model, port, arguments.clients, arguments.seconds, picture))
        finally:
            for process, _ in services.values():
                process.terminate()
                process.wait()
    return report(found, BARS[arguments.model])


def report(found: dict[int, list[dict[str, float]]], bar: float) -> int:
    """Prints the figures."""
    speeds = {}
    for size, rounds in found.items():
        speeds[size] = statistics.median(result["per_second"] for result in rounds)
        statuses = [result["statuses"] for result in rounds]
        slowest = max(result["p99_ms"] for result in rounds)
        print(f"max_batch {size:>2}: {speeds[size]:7.0f} requests/s, p99 {slowest:6.1f} ms, statuses {statuses}")
    # of the same round, so that what the machine did meanwhile cancels out
    ratio = statistics.median(
        batched["per_second"] / single["per_second"] for batched, single in zip(found[32], found[1], strict=True)
    )
    print(f"batching / one by one: {ratio:.2f} (bar: {bar}); load average {os.getloadavg()[0]:.1f}")
    return 0 if ratio >= bar else 1


def export(model: str, directory: Path) -> Path:
    """An exported model, made in a process of its own."""
    scenario = {
        "tutorial": "examples.tutorial.full.scenario:TutorialScenario",
        "mobilenet": "benchmarks.mobilenet:MobileNetScenario",
    }[model]
    subprocess.run(
        [sys.executable, "-c", EXPORT, *scenario.split(":"), str(directory)], check=True, capture_output=True
    )
    return directory


EXPORT = """
import importlib, pathlib, sys
scenario = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
params = scenario.default_trainer_params()
made = scenario(params.scenario)
made.export(made.build(), pathlib.Path(sys.argv[3]), params)
"""


def draw(path: Path) -> Path:
    """A picture of a digit."""
    from PIL import Image

    from scena.data.sources.digits import load_digits

    Image.fromarray(load_digits("digits", "test")[0][0]).save(path)
    return path


def start(export: Path, max_batch: int, folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A service in a process of its own, once it answers."""
    log = folder / f"serve{max_batch}.log"
    command = [sys.executable, "-m", "scena", "serve", str(export), "--port", "0", "--max_batch", str(max_batch)]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, stdout=file)
    for _ in range(600):
        text = log.read_text()
        if "http://127.0.0.1:" in text:
            port = int(text.split("http://127.0.0.1:")[1].split()[0])
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").read()
                return process, port
            except OSError:
                pass
        if process.poll() is not None:
            raise SystemExit(text)
        time.sleep(0.1)
    raise SystemExit(f"The service did not start: {log.read_text()}")


def load(model: str, port: int, clients: int, seconds: float, picture: Path) -> dict[str, float]:
    """What the clients saw."""
    where = ["127.0.0.1", str(port), f"/v1/models/{model}:predict"]
    command = [sys.executable, "-m", "benchmarks.load", *where, str(clients), str(seconds), str(picture), "image/png"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    sys.exit(main())
