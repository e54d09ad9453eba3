"""`scena serve` beside LitServe, BentoML, plain FastAPI, and itself without batching: requests per second, slowest answers, CPU time.

    python -m benchmarks.serving [--model mobilenet | tutorial] [--runtime onnx | keras] [--contenders scena litserve …]
        [--seconds 3] [--clients 16] [--rounds 7]

The model is MobileNetV2 at 32 pixels, or the tutorial's CNN, with random weights. All contenders run the
same file in the same runtime and get the same JSON with a PNG in it, from clients in a process of their own. They take turns, so that a
busy machine disturbs all alike; a ratio is the median of the ratios of the rounds, to the best peer of each. FastAPI calls
`model.predict` of Keras, or the session of ONNX Runtime, for each request; the others batch. With ONNX Runtime each peer takes part
twice: as the library comes, with all cores for a call, and with one thread (`fastapi-1`). Peers are installed with uv, each in an
environment of its own.
"""

import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.options import read_options
from benchmarks.serving_contenders import ONE_THREAD, PEERS, Contender, start, version
from scena.params import Params, param

BATCHING_BARS = {("tutorial", "keras"): 2.0, ("mobilenet", "keras"): 3.0}
"""Batching must give at least so many times the throughput of one by one. (ONNX Runtime needs no batches to be fast.)"""
PEER_BAR = 1.4
"""Scena must answer so many times the requests of the best peer."""


class Options(Params):
    """What to measure."""

    model: str = param("mobilenet", choices=["mobilenet", "tutorial"], help="what is served")
    runtime: str = param("onnx", choices=["onnx", "keras"], help="what runs it, on all sides")
    contenders: list[str] = param(
        ["scena", "single", *PEERS, *(f"{name}{ONE_THREAD}" for name in PEERS)],
        help="who takes part; with one thread (-1) only in ONNX Runtime",
    )
    seconds: float = param(3.0, gt=0, help="how long a round of one contender takes")
    clients: int = param(16, ge=1, help="clients that ask at the same time")
    rounds: int = param(7, ge=1, help="how often each is measured")
    export: Path | None = param(None, help="where the export is, or is made and kept (default: made and removed)")


def main() -> int:
    """Prints a row for each contender, and the ratios; the status is 1 below a bar."""
    options = read_options(Options, __doc__)
    if options.runtime != "onnx":
        options.contenders = [name for name in options.contenders if not name.endswith(ONE_THREAD)]
    peers = list(dict.fromkeys(name.removesuffix(ONE_THREAD) for name in options.contenders if is_peer(name)))
    if options.model != "mobilenet" and peers:
        raise SystemExit("Only MobileNetV2 is served by others: --contenders scena single")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exported = options.export or folder / "export"
        if not exported.exists():
            export(options.model, options.runtime, exported)
        request = folder / "request.json"
        request.write_bytes(request_body(options.model))
        contenders: list[Contender] = []
        try:
            for name in options.contenders:
                contenders.append(start(name, options.model, options.runtime, exported, folder))
                contenders[-1].wait(request.read_bytes())
            check_answers(contenders, request.read_bytes())
            for number in range(options.rounds + 1):
                for contender in contenders if number % 2 else reversed(contenders):
                    seen = measure(contender, request, options)
                    if number:  # the first round warms up
                        contender.found.append(seen)
        finally:
            for contender in contenders:
                contender.stop()
        versions = [f"{name} {version(name, options.runtime)}" for name in peers]
        print(f"{options.model}, {options.runtime}, {options.clients} clients; {', '.join(versions)}")
        return report(contenders, options, bare(options, exported))


def export(model: str, runtime: str, directory: Path) -> Path:
    """An exported model, made and converted in a process of its own."""
    scenario = {
        "tutorial": "examples.tutorial.full.scenario:TutorialScenario",
        "mobilenet": "benchmarks.mobilenet:MobileNetScenario",
    }[model]
    form = {"keras": "keras", "onnx": "onnx"}[runtime]
    for command in (
        ["-c", EXPORT, *scenario.split(":"), str(directory)],
        ["-m", "scena", "export", str(directory), "--format", form],
    ):
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
    return directory


EXPORT = """
import importlib, pathlib, sys
scenario = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
params = scenario.default_trainer_params()
made = scenario(params.scenario)
built = made.build()
if hasattr(built.root.graph, "calibrate"):
    built.root.graph.calibrate()
made.export(built, pathlib.Path(sys.argv[3]), params)
"""


def request_body(model: str) -> bytes:
    """A request with one image."""
    from io import BytesIO

    from PIL import Image

    from scena.data.sources.digits import load_digits

    file = BytesIO()
    pixels = load_digits("digits", "test")[0][0]
    if model == "mobilenet":
        pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype("uint8")
    Image.fromarray(pixels).save(file, "PNG")
    return json.dumps({"instances": [{"b64": base64.b64encode(file.getvalue()).decode()}]}).encode()


def check_answers(contenders: list[Contender], request: bytes) -> None:
    """All must answer the same."""
    answers = [_first(json.loads(contender.ask(request))) for contender in contenders]
    for contender, answer in zip(contenders, answers, strict=True):
        if not np.allclose(answer, answers[0], atol=1e-4):
            raise SystemExit(f"{contender.name} answers something else: {answer}, {contenders[0].name} {answers[0]}")


def is_peer(name: str) -> bool:
    """Whether it is not Scena."""
    return name.removesuffix(ONE_THREAD) in PEERS


def _first(answer: Any) -> Any:
    row = (answer["predictions"] if isinstance(answer, dict) else answer)[0]
    return row["pred"] if isinstance(row, dict) else row


def measure(contender: Contender, request: Path, options: Options) -> dict[str, Any]:
    """What the clients saw in one round, and the CPU seconds of the service for 1,000 requests."""
    where = ["127.0.0.1", str(contender.port), contender.path]
    how = [str(options.clients), str(options.seconds), str(request), "application/json"]
    before = contender.cpu_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load", *where, *how], check=True, capture_output=True, text=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    if set(result["statuses"]) != {"200"}:
        raise SystemExit(f"{contender.name} refused requests: {result['statuses']}")
    return {**result, "cpu": 1000 * (contender.cpu_seconds() - before) / result["requests"]}


def bare(options: Options, exported: Path) -> dict[int, float]:
    """CPU seconds of the runtime alone for 1,000 samples, by batch size."""
    done = subprocess.run(
        [sys.executable, "-c", BARE, options.runtime, str(exported)], check=True, capture_output=True, text=True
    )
    return {int(size): value for size, value in json.loads(done.stdout.splitlines()[-1]).items()}


BARE = """
import json, os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
runtime, directory = sys.argv[1:]
if runtime == "onnx":
    import onnxruntime
    session = onnxruntime.InferenceSession(directory + "/model.onnx", providers=["CPUExecutionProvider"])
    name, shape = session.get_inputs()[0].name, session.get_inputs()[0].shape[1:]
    call = lambda images: session.run(None, {name: images})
else:
    import keras
    import tensorflow as tf
    model = keras.saving.load_model(directory + "/plain.keras", compile=False)
    name, shape = model.inputs[0].name, model.inputs[0].shape[1:]
    compiled = tf.function(lambda images: model({name: images}, training=False), reduce_retracing=True)
    call = lambda images: [value.numpy() for value in compiled(images).values()]
found = {}
for size in (1, 16):
    images = np.zeros((size, *shape), "uint8")
    for _ in range(20):
        call(images)
    times = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(512 // size):
            call(images)
        times.append((time.process_time() - begun) / 512 * 1000)
    found[size] = min(times)
print(json.dumps(found))
"""


def report(contenders: list[Contender], options: Options, runtime: dict[int, float]) -> int:
    """Prints the figures."""
    print(f"{'':<12}{'requests/s':>11}{'median ms':>11}{'p99 ms':>9}{'CPU s / 1000':>14}")
    for contender in contenders:
        speed, middle, slow, cpu = (_median(contender, key) for key in ("per_second", "median_ms", "p99_ms", "cpu"))
        print(f"{contender.name:<12}{speed:>11.0f}{middle:>11.1f}{slow:>9.1f}{cpu:>14.2f}")
    for size, seconds in runtime.items():
        print(f"the runtime alone, batches of {size}: {seconds:.2f} CPU s / 1000")
    by_name = {contender.name: contender for contender in contenders}
    good = []
    if {"scena", "single"} <= set(by_name):
        ratio = _ratio(by_name["scena"], [by_name["single"]])
        bar = BATCHING_BARS.get((options.model, options.runtime), 0.0)
        good.append(ratio >= bar)
        print(f"batching / one by one: {ratio:.2f} (bar: {bar})")
    peers = [contender for contender in contenders if is_peer(contender.name)]
    if "scena" in by_name and peers:
        ratio = _ratio(by_name["scena"], peers)
        slowest, best = _median(by_name["scena"], "p99_ms"), min(_median(peer, "p99_ms") for peer in peers)
        good += [ratio >= PEER_BAR, slowest < best]
        print(f"Scena / the best of the others, in each round: {ratio:.2f} (bar: {PEER_BAR})")
        print(f"p99: {slowest:.1f} ms, the best of the others {best:.1f} ms")
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 0 if all(good) else 1


def _median(contender: Contender, key: str) -> float:
    return statistics.median(found[key] for found in contender.found)


def _ratio(contender: Contender, others: list[Contender]) -> float:
    """Of the same round, so that what the machine did meanwhile cancels out."""
    rounds = zip(contender.found, *(other.found for other in others), strict=True)
    return statistics.median(own["per_second"] / max(other["per_second"] for other in rest) for own, *rest in rounds)


if __name__ == "__main__":
    sys.exit(main())
