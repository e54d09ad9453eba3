"""Predicting in each runtime beside a bare loop over the same library: one sample, throughput, and the start of commands.

    python -m benchmarks.runtimes [--runtimes keras onnx openvino litert] [--rounds 5] [--samples 4096] [--export DIRECTORY]

The model is the CNN of examples.tutorial.full. Both sides take turns, round by round, and a figure is the median of the ratios of the
rounds, so that a busy machine is unfair to neither. The bare loop has its batches ready as arrays; the predictor reads samples, batches
them and hands out samples. In mode EVALUATION the scenario has no code of its own in between.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from benchmarks.options import read_options
from benchmarks.prediction import export
from scena.params import Params, param

SINGLE_BARS = {"keras": 1.2}
"""One sample may take so many times the bare call; other runtimes 1.5 times."""
BATCH_BAR = 0.95
"""The throughput of the bare loop that must be reached."""
PREDICT_BAR = 1.0
READY_BAR = 2.0
MEMORY_BAR = 200.0


class Options(Params):
    """What to measure."""

    runtimes: list[str] = param(["keras", "onnx", "openvino", "litert"], help="the runtimes")
    samples: int = param(4096, ge=256, help="samples in a round; there are at least 64 batches")
    rounds: int = param(5, ge=1, help="how often both sides run")
    batch_sizes: list[int] = param([16, 64, 256], help="the batch sizes")
    single: int = param(300, ge=10, help="how often one sample is predicted")
    commands: int = param(3, ge=0, help="how often the commands are started")
    export: Path | None = param(None, help="where the export is, or is made and kept (default: made and removed)")


def main() -> int:
    """Prints the figures; the status is 1 if a bar is missed."""
    options = read_options(Options, __doc__)
    with tempfile.TemporaryDirectory() as folder:
        directory = options.export or Path(folder) / "export"
        if not directory.exists():
            converted(directory, options.runtimes)
        good = []
        for name in options.runtimes:
            good.append(single(directory, name, options.single))
            good += [batches(directory, name, size, options) for size in options.batch_sizes]
        if options.commands and "onnx" in options.runtimes:
            good += [command(directory, Path(folder), options.commands) for command in (predict_command, serve_command)]
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 0 if all(good) else 1


def converted(directory: Path, runtimes: list[str]) -> Path:
    """The export, in the format of each runtime."""
    from scena.commands.main import main as scena

    export(directory)
    formats = [name for name in runtimes if name != "keras"]
    if formats and scena(["export", str(directory), "--format", *formats]):
        raise SystemExit("The model could not be converted.")
    return directory


def opened(directory: Path, runtime: str, size: int) -> tuple[Any, Callable[[np.ndarray], Any]]:
    """The predictor, and the bare call of its library."""
    from examples.tutorial.full.scenario import TutorialScenario
    from scena import DataPipelineParams, PredictorParams

    pipeline = DataPipelineParams(batch_size=size, num_processes=0)
    params = PredictorParams(pipeline=pipeline, include_targets=True)
    predictor = TutorialScenario.create_predictor(directory, params, runtime=runtime)
    return predictor, bare(directory, runtime, predictor)


def bare(directory: Path, runtime: str, predictor: Any) -> Callable[[np.ndarray], Any]:
    """How a script would call the library."""
    if runtime == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(directory / "model.onnx", providers=["CPUExecutionProvider"])
        return lambda images: session.run(None, {"img": images})
    if runtime == "openvino":
        import openvino

        precision = {
            "INFERENCE_PRECISION_HINT": "f32"
        }  # Scena's; by itself OpenVINO takes bfloat16 where the processor has it
        model = openvino.Core().compile_model(directory / "openvino" / "model.xml", "CPU", precision)
        return lambda images: model({"img": images})
    if runtime == "litert":
        from ai_edge_litert.interpreter import Interpreter

        runner = Interpreter(str(directory / "model.tflite")).get_signature_runner("serving_default")
        return lambda images: runner(img=images)
    import tensorflow as tf

    network = predictor.built.prediction_model
    call = tf.function(
        lambda images: network({"img": images}, training=False),
        input_signature=[tf.TensorSpec((None, 28, 28), "uint8")],
    )
    return lambda images: {name: value.numpy() for name, value in call(tf.convert_to_tensor(images)).items()}


def single(directory: Path, runtime: str, times: int) -> bool:
    """The time of one sample beside the bare call."""
    from scena import Sample

    predictor, call = opened(directory, runtime, 16)
    image = np.zeros((28, 28), "uint8")
    sample = Sample(inputs={"img": image}, targets={"gt": np.uint8(0)})
    batch = image[None]
    ours, theirs = interleaved(lambda: predictor.predict_sample(sample), lambda: call(batch), times)
    ratio, bar = statistics.median(ours) / statistics.median(theirs), SINGLE_BARS.get(runtime, 1.5)
    print(
        f"{runtime:>8}, one sample: {1000 * statistics.median(ours):.2f} ms, bare call {1000 * statistics.median(theirs):.2f} ms; "
        f"ratio {ratio:.2f} (bar: {bar})"
    )
    return ratio <= bar


def batches(directory: Path, runtime: str, size: int, options: Options) -> bool:
    """Throughput beside the bare loop."""
    from scena import Sample

    predictor, call = opened(directory, runtime, size)
    count = max(options.samples, 64 * size)
    pixels = np.random.default_rng(0).integers(0, 256, (count, 28, 28)).astype("uint8")
    samples = [Sample(inputs={"img": image}, targets={"gt": np.uint8(0)}) for image in pixels]

    def loop() -> None:
        for first in range(0, len(pixels), size):
            call(pixels[first : first + size])

    ours, theirs = interleaved(lambda: sum(1 for _ in predictor.predict_raw(samples)), loop, options.rounds, 0.05)
    ratio = statistics.median(bare / own for own, bare in zip(ours, theirs, strict=True))
    speeds = [count / statistics.median(values) for values in (ours, theirs)]
    print(
        f"{runtime:>8}, batch {size:>3}: {speeds[0]:.0f}/s, bare loop {speeds[1]:.0f}/s; ratio {ratio:.2f} (bar: {BATCH_BAR})"
    )
    return ratio >= BATCH_BAR


def interleaved(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int, pause: float = 0
) -> tuple[list[float], list[float]]:
    """The seconds of both in each round, after two that do not count."""
    found: tuple[list[float], list[float]] = [], []
    for number in range(rounds + 2):
        for way, seconds in zip((ours, theirs), found, strict=True):
            if pause:
                time.sleep(pause)  # threads of the other side may still wait busily
            started = time.perf_counter()
            way()
            if number > 1:
                seconds.append(time.perf_counter() - started)
    return found


def predict_command(directory: Path, folder: Path, times: int) -> bool:
    """CPU seconds of `scena predict` on one image, from the shell, beside importing onnxruntime."""
    from PIL import Image

    image = folder / "image.png"
    Image.fromarray(np.zeros((28, 28), "uint8")).save(image)
    command = [sys.executable, "-m", "scena", "predict", str(directory), "--data.image_files", str(image)]
    ours, theirs = [], []
    for _ in range(times + 1):
        ours.append(cpu_seconds([*command, "--predict.runtime", "onnx"]))
        theirs.append(cpu_seconds([sys.executable, "-c", "import numpy, onnxruntime"]))
    own, imports = statistics.median(ours[1:]), statistics.median(theirs[1:])
    print(
        f"scena predict with onnx: {own:.2f} s of CPU time (bar: {PREDICT_BAR}), importing numpy and onnxruntime {imports:.2f} s; "
        f"ratio {own / imports:.2f}"
    )
    return own <= PREDICT_BAR


def cpu_seconds(command: list[str]) -> float:
    """User and system time of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def serve_command(directory: Path, folder: Path, times: int) -> bool:
    """Seconds until `scena serve` answers, and its memory then."""
    seconds, memory = [], []
    for _ in range(times):
        log = folder / "serve.log"
        started = time.perf_counter()
        with log.open("wb") as file:
            command = [sys.executable, "-m", "scena", "serve", str(directory), "--port", "0", "--runtime", "onnx"]
            process = subprocess.Popen(command, stderr=file, stdout=file)
        try:
            while "http://127.0.0.1:" not in (text := log.read_text()):
                if process.poll() is not None:
                    raise SystemExit(text)
                time.sleep(0.01)
            port = text.split("http://127.0.0.1:")[1].split()[0]
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health").read()
            seconds.append(time.perf_counter() - started)
            status = Path(f"/proc/{process.pid}/status").read_text()
            memory.append(int(status.split("VmRSS:")[1].split()[0]) / 1000)
        finally:
            process.terminate()
            process.wait()
    ready, used = statistics.median(seconds), statistics.median(memory)
    print(f"scena serve with onnx: ready in {ready:.2f} s (bar: {READY_BAR}), {used:.0f} MB (bar: {MEMORY_BAR:.0f})")
    return ready <= READY_BAR and used <= MEMORY_BAR


if __name__ == "__main__":
    sys.exit(main())
