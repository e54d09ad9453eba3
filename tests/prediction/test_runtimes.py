"""Runtimes: converted models answer as Keras does, need neither Keras nor TensorFlow, and are used only if they were verified."""

import gc
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.tutorial.full.params import DigitsParams, ImageFilesParams
from examples.tutorial.full.scenario import TutorialScenario
from scena import PredictorParams, Sample, load_digits
from scena.backends.params import DeviceParams
from scena.commands.main import main
from scena.data.params import DataPipelineParams
from scena.data.sample import Batch, Cursor
from scena.errors import DataError, ScenarioError
from scena.evaluation.params import LAVParams
from scena.prediction.converted import read_converted
from scena.prediction.params import LiteRTRuntimeParams, OnnxParams
from scena.prediction.runtimes.parallel import calls_at_once, exclusive
from scena.prediction.serving.batcher import Batcher
from scena.storage.checksums import verify_tree
from tests.evaluation.exporting import export
from tests.prediction.http_service import ask
from tests.prediction.scenarios import TextScenario, sequence
from tests.toy.scenario import ToyScenario

RUNTIMES = ["onnx", "openvino", "litert"]
TOY = ["--scenario", "tests.toy.scenario"]


def outputs(directory: Path, runtime: str) -> dict[str, np.ndarray]:
    params = PredictorParams(pipeline=DataPipelineParams(batch_size=16, limit=40), include_targets=True)
    predictor = TutorialScenario.create_predictor(directory, params, runtime=runtime)
    samples = list(predictor.predict(DigitsParams()))
    return {name: np.stack([sample.outputs[name] for sample in samples]) for name in samples[0].outputs}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_runtime_agrees_with_keras_within_what_the_export_says(digits: Path, runtime: str) -> None:
    (record,) = [found for found in read_converted(digits / "model1").values() if found.format == runtime]
    assert record.samples == 16 and record.tolerance == 1e-4
    assert 0 <= max(record.differences.values()) <= record.tolerance
    wanted, received = outputs(digits / "model1", "keras"), outputs(digits / "model1", runtime)
    assert list(wanted) == list(received)
    for name, values in wanted.items():
        assert received[name].dtype == values.dtype and received[name].shape == values.shape
        np.testing.assert_allclose(received[name], values, atol=2 * record.tolerance)
    assert not np.array_equal(wanted["pred"], outputs(digits / "model2", "keras")["pred"])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_runtime_may_be_called_from_several_threads(digits: Path, runtime: str) -> None:
    predictor = TutorialScenario.create_predictor(digits / "model1", runtime=runtime)
    samples = [Sample(inputs=str(digits / f"digit{number % 3}.png")) for number in range(60)]
    alone = [predictor.predict_sample(sample).outputs["pred"] for sample in samples[:3]]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda sample: predictor.predict_sample(sample).outputs["pred"], samples))
    for number, found in enumerate(together):
        np.testing.assert_array_equal(found, alone[number % 3])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_calls_at_the_same_time_answer_as_calls_alone_do(digits: Path, runtime: str) -> None:
    predictor = TutorialScenario.create_predictor(digits / "model1", runtime=runtime)
    engine: Any = predictor.engine
    images = np.random.default_rng(0).integers(0, 256, (24, 28, 28)).astype("uint8")
    parts = [{"img": images[first : first + 1 + first % 3]} for first in range(20)]  # LiteRT is resized for each
    alone = [engine.predict(part)["pred"] for part in parts]
    assert (engine._beside is engine._alone) == (runtime == "litert")  # whose calls have one thread anyway
    with engine.many_calls(), ThreadPoolExecutor(8) as threads:
        for wanted, received in zip(alone * 10, threads.map(engine.predict, parts * 10), strict=True):
            np.testing.assert_allclose(received["pred"], wanted, atol=1e-5)
    assert engine._beside is not None and not engine._many and not engine._running
    with pytest.raises(Exception, match=r"(?i)shape|dimension|at most"):
        engine.predict({"img": np.zeros((1, 40, 28), "uint8")})
    assert not engine._running
    np.testing.assert_allclose(engine.predict(parts[0])["pred"], alone[0], atol=1e-5)
    engine.prepare_service(parts[0])
    np.testing.assert_allclose(engine.predict(parts[1])["pred"], alone[1], atol=1e-5)


def test_a_signal_after_models_of_openvino_have_ended(digits: Path) -> None:
    """Each model gives its thread another stack for signals."""
    noticed: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: noticed.append(number))
    try:
        engines = [TutorialScenario.create_predictor(digits / "model1", runtime="openvino").engine for _ in range(3)]
        for number in range(3):
            engines[number].predict({"img": np.zeros((1, 28, 28), "uint8")})
        while engines:
            engines.pop(0)
            gc.collect()
            os.kill(os.getpid(), signal.SIGUSR1)
        assert noticed == [signal.SIGUSR1] * 3
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_objects_that_serve_one_call_at_a_time() -> None:
    made: list[int] = []
    running, most = [0], [0]
    lock = threading.Lock()

    def create() -> Any:
        number = len(made)
        made.append(number)
        own = threading.Lock()

        def call(inputs: Any) -> Any:
            assert own.acquire(blocking=False), "two calls at the same time"
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.002)
            with lock:
                running[0] -= 1
            own.release()
            if "wrong" in inputs:
                raise ValueError(number)
            return inputs

        return call

    call = exclusive(create, 3, create())
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(call, [{"x": number} for number in range(100)])) == [{"x": n} for n in range(100)]
    assert most[0] == 3 == len(made)
    with pytest.raises(ValueError):
        call({"wrong": 1})
    for _ in range(3):
        call({})
    assert len(made) == 3  # the one that failed is not used again; two are enough here


def test_how_many_calls_at_once() -> None:
    small, large = 1_000_000, 150_000_000
    assert calls_at_once(4, None, small, copies=False) == calls_at_once(4, None, small, copies=True) == 4
    assert calls_at_once(4, 2, small, copies=True) == 2 and calls_at_once(4, 8, small, copies=True) == 1
    assert calls_at_once(64, None, 30_000_000, copies=False) == 64
    assert calls_at_once(64, None, 30_000_000, copies=True) == 4  # 90 MB more
    assert calls_at_once(4, None, large, copies=False) == 1 == calls_at_once(4, 1, large, copies=True)
    assert calls_at_once(4, 1, large, copies=False) == 4


def test_a_batcher_with_threads_on_a_real_runtime(digits: Path) -> None:
    params = PredictorParams(pipeline=DataPipelineParams(batch_size=8, num_processes=0), include_targets=True)
    predictor = TutorialScenario.create_predictor(digits / "model1", params, runtime="onnx")
    images = load_digits("digits", "test")[0][:50]
    wanted = predictor.engine.predict({"img": images})["pred"]
    together = threading.Barrier(2)

    def predict(samples: Any) -> list[Sample]:
        if samples[0].meta == "both":
            together.wait(30)  # passes only if two batches are predicted at the same time
        return list(predictor.predict_raw(samples))

    def group(number: int, meta: Any = None) -> list[Sample]:
        rows = [(number + part) % 50 for part in range(1 + number % 5)]
        return [Sample({"img": images[row]}, {"gt": np.uint8(0)}, meta=meta or row) for row in rows]

    batcher = Batcher(predict, max_batch=8, max_delay=0.001, max_queue=10_000, threads=2)
    for answer in [batcher.submit(group(4, "both")) for _ in range(2)]:  # five samples: two batches
        assert len(answer.result(60)) == 5
    with ThreadPoolExecutor(6) as clients:
        answers = list(clients.map(lambda number: batcher.submit(group(number)), range(300)))
    bad = batcher.submit([Sample({"img": images[0][:3]}, {"gt": np.uint8(0)}), *group(0)])
    batcher.close()  # answers what is queued
    for number, answer in enumerate(answers):
        found = answer.result(0)
        assert [sample.meta for sample in found] == [sample.meta for sample in group(number)]
        for sample in found:
            np.testing.assert_allclose(sample.outputs["pred"], wanted[sample.meta], atol=1e-5)
    first, second = bad.result(0)
    assert isinstance(first, DataError) and second.outputs["class"] == wanted[0].argmax()
    assert batcher.waiting == 0 and not any(thread.is_alive() for thread in batcher._threads)


def test_a_long_list_is_predicted_as_a_stream_is(digits: Path) -> None:
    pixels, classes = (part[:40] for part in load_digits("digits", "test"))
    pairs = list(zip(pixels, classes, strict=True))
    samples = [Sample({"img": image}, {"gt": np.uint8(digit)}, meta=digit) for image, digit in pairs]
    params = PredictorParams(pipeline=DataPipelineParams(batch_size=16, limit=38), include_targets=True)
    predictor = TutorialScenario.create_predictor(digits / "model1", params, runtime="onnx")
    listed, streamed = list(predictor.predict_raw(samples)), list(predictor.predict_raw(iter(samples)))
    assert [sample.index for sample in listed] == [sample.index for sample in streamed] == list(range(38))
    for one, other, given in zip(listed, streamed, samples, strict=False):
        assert one.meta == other.meta == given.meta and one.targets == other.targets == given.targets
        np.testing.assert_array_equal(one.inputs["img"], given.inputs["img"])
        assert list(one.outputs) == list(other.outputs)
        for name, value in one.outputs.items():
            np.testing.assert_allclose(value, other.outputs[name], atol=1e-5)
    wrong = Sample({"img": pixels[0][:5]}, {"gt": np.uint8(0)})
    with pytest.raises(DataError, match=r"inputs\['img'\] of sample 37"):
        list(predictor.predict_raw([*samples[:37], wrong]))
    batch = Batch({"img": pixels[:3]}, {}, [], 3, Cursor())
    with pytest.raises(IndexError, match="'pred' has 2 rows for 3 samples"):
        list(batch.samples({"pred": np.zeros((2, 10))}))


WITHOUT_KERAS = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("keras", "tensorflow", "jax", "tensorboard"):
            raise ImportError(f"{name} was imported")

sys.meta_path.insert(0, Refuse())
from scena.commands.main import main

line = []
for word in [*sys.argv[1:], "then"]:
    if word == "then":
        status = main(line)
        line = []
        if status:
            sys.exit(status)
    else:
        line.append(word)
"""


def test_predict_vote_and_lav_import_neither_keras_nor_tensorflow(digits: Path) -> None:
    one, both = ["model1"], ["model1", "model2"]
    image = ["--data.image_files", "digit0.png"]
    commands = [
        ["predict", *one, *image],
        ["predict", *one, *image, "--predict.runtime", "openvino", "--out", "openvino.jsonl"],
        ["predict", *one, *image, "--predict.runtime", "litert", "--out", "litert.csv"],
        ["predict", *both, *image, "--predict.runtime", "onnx", "--out", "voted.jsonl"],
        ["lav", *both, "--lav.runtime", "auto", "--lav.limit", "50", "--dump", "dump", "--json", "lav.json"],
    ]
    words = [word for command in commands for word in [*command, "then"]][:-1]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_KERAS, *words], cwd=digits, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "digit0.png: " in done.stdout
    assert "model1 runs with onnx (verified on 16 samples: it differs by" in done.stderr
    assert "Losses and metrics are skipped, because they need Keras; --lav.metrics computes them." in done.stderr
    voted = json.loads((digits / "voted.jsonl").read_text())["outputs"]["pred"]
    keras = TutorialScenario.create_predictor([digits / "model1", digits / "model2"], runtime="keras")
    expected = keras.predict_sample(Sample(inputs=str(digits / "digit0.png"))).outputs["pred"]
    np.testing.assert_allclose(voted, expected, atol=1e-4)
    assert (digits / "dump").stat().st_size > 1000
    lav = TutorialScenario.create_multi_lav(
        [digits / "model1", digits / "model2"], LAVParams(pipeline=DataPipelineParams(limit=50))
    )
    found, wanted = json.loads((digits / "lav.json").read_text()), lav.run(DigitsParams())
    assert [{"eval_acc", "worst_class_acc"} <= set(values) for values in found.values()] == [True] * 3
    assert [set(values) & {"loss", "acc"} for values in found.values()] == [set()] * 3
    assert [values["eval_acc"] for values in found.values()] == [values["eval_acc"] for values in wanted.values()]


@pytest.fixture(scope="module")
def service(digits: Path) -> Iterator[int]:
    """The port of a service that cannot import Keras."""
    command = ["serve", "model1", "model2", "--runtime", "onnx", "--port", "0"]
    with (digits / "serve.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", WITHOUT_KERAS, *command], cwd=digits, stderr=log)
    try:
        while "http://127.0.0.1:" not in (text := (digits / "serve.log").read_text()):
            assert process.poll() is None, text
            time.sleep(0.05)
        yield int(text.split("http://127.0.0.1:")[1].split()[0])
    finally:
        process.terminate()
        process.wait()


def test_serve_needs_no_keras(digits: Path, service: int) -> None:
    image = (digits / "digit0.png").read_bytes()
    status, answer = ask(service, "/v1/models/tutorial:predict", image, "image/png")
    assert status == 200, answer
    predictor = TutorialScenario.create_predictor([digits / "model1", digits / "model2"], runtime="keras")
    expected = predictor.predict_sample(Sample(inputs=str(digits / "digit0.png"))).outputs["pred"]
    np.testing.assert_allclose(answer["predictions"][0]["pred"], expected, atol=1e-4)
    described = ask(service, "/v1/models/tutorial/metadata")[1]["metadata"]["signature_def"]["serving_default"]
    assert described["outputs"]["pred"] == {"shape": [None, 10], "dtype": "float32"}
    assert ask(service, "/")[0] == 200


def test_a_missing_runtime_says_how_to_add_it(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = tmp_path / "toy"
    shutil.copytree(exports[0], toy)
    command = ["predict", str(toy), *TOY, "--data.count", "2", "--predict.runtime", "onnx", "--out", "-"]
    assert main(command) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"scena predict: error: The runtime onnx cannot be used: {toy} has no model.onnx. Add it")
    assert main([*shlex.split(error.partition("Add it with: scena ")[2]), *TOY]) == 0
    assert read_converted(toy)["model.onnx"].model_prints  # the toy's model prints predictions itself
    capsys.readouterr()
    assert main(command) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["adapt", str(toy), *TOY, "--out", str(tmp_path / "new"), "--model.l2", "0.5"]) == 0
    line = f"Converted models are not copied. Add them with: scena export {tmp_path / 'new'} --format onnx"
    assert capsys.readouterr().out.splitlines()[-1] == line and not read_converted(tmp_path / "new")


def test_a_model_of_other_weights_is_not_used(model: Path, digits: Path) -> None:
    shutil.rmtree(model)
    shutil.copytree(digits / "model2", model)
    for name in ("model.onnx", "converted.json"):
        shutil.copy(digits / "model1" / name, model / name)
    with pytest.raises(ScenarioError, match=r"was made from another model.keras than the one beside it. Convert it"):
        TutorialScenario.create_predictor(model, runtime="onnx")
    wanted, received = outputs(digits / "model2", "keras"), outputs(model, "auto")
    np.testing.assert_array_equal(received["pred"], wanted["pred"])


def test_a_changed_file_is_not_used(model: Path) -> None:
    content = bytearray((model / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (model / "model.onnx").write_bytes(content)
    with pytest.raises(ScenarioError, match=r"model.onnx is not the file that was verified. Convert it again with"):
        TutorialScenario.create_predictor(model, runtime="onnx")
    assert type(TutorialScenario.create_predictor(model).engine).__name__ == "OpenVINORuntime"  # the next one


def test_a_model_without_a_record_is_not_used(model: Path) -> None:
    (model / "converted.json").unlink()
    with pytest.raises(ScenarioError, match=r"model.tflite was not verified against model.keras. Convert it again"):
        TutorialScenario.create_predictor(model, runtime="litert")
    assert TutorialScenario.create_predictor(model).built.prediction_model is not None


def test_auto_uses_what_is_installed(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ScenarioError, match=r"The runtime onnx needs onnxruntime: pip install 'scena\[onnx\]'"):
        TutorialScenario.create_predictor(digits / "model1", runtime="onnx")
    assert type(TutorialScenario.create_predictor(digits / "model1").engine).__name__ == "OpenVINORuntime"
    assert TutorialScenario.create_predictor(digits / "model2").built.prediction_model is not None


def test_what_only_keras_can_do(digits: Path) -> None:
    directory = digits / "model1"
    eager = PredictorParams(run_eagerly=True)
    assert TutorialScenario.create_predictor(directory, eager).built.prediction_model is not None
    with pytest.raises(ScenarioError, match=r"onnx cannot run op by op \(run_eagerly\); the runtime keras can"):
        TutorialScenario.create_predictor(directory, eager, runtime="onnx")
    with pytest.raises(ScenarioError, match="onnx runs on the CPU, and GPUs were asked for"):
        TutorialScenario.create_predictor(directory, PredictorParams(device=DeviceParams(gpus=[0])), runtime="onnx")
    predictor = TutorialScenario.create_predictor(directory, runtime="onnx")
    with pytest.raises(AttributeError, match="no 'prediction_model': OnnxRuntime runs the model. Choose the runtime"):
        _ = predictor.built.prediction_model


def test_losses_and_metrics_of_a_runtime_are_those_of_keras(exports: list[Path], tmp_path: Path) -> None:
    params: Any = ToyScenario.default_trainer_params()
    params.scenario.model.l2 = 0.1  # a penalty on weights counts, too
    directory = export(tmp_path / "toy", 3, ToyScenario, params)
    assert main(["export", str(directory), *TOY, "--format", "onnx"]) == 0
    source = params.gen.val_gen()
    keras = ToyScenario.create_lav(directory).run(source)
    onnx = build_lav(directory, "onnx", metrics=True).run(source)
    assert set(keras) == set(onnx) and {"loss", "acc"} <= set(keras)
    for name, value in keras.items():
        assert onnx[name] == pytest.approx(value, abs=1e-4)
    plain = build_lav(directory, "keras", metrics=False).run(source)
    assert plain == {name: keras[name] for name in plain} and not {"loss", "acc"} & set(plain)


def build_lav(directory: Path, runtime: str, *, metrics: bool) -> Any:
    from scena.params import build

    return ToyScenario.create_lav(directory, build({"runtime": {"class": runtime}, "metrics": metrics}, LAVParams))


def test_litert_with_a_fixed_length_refuses_longer_samples(tmp_path: Path) -> None:
    params: Any = TextScenario.default_trainer_params()
    params.scenario.model.recurrent = True
    directory = export(tmp_path / "text", 1, TextScenario, params)
    command = ["export", str(directory), "--scenario", "tests.prediction.scenarios", "--format", "litert"]
    assert main([*command, "--length", "4"]) == 0
    litert = TextScenario.create_predictor(directory, runtime=LiteRTRuntimeParams(threads=1))
    keras = TextScenario.create_predictor(directory, runtime="keras")
    (one,) = litert.predict_raw([sequence(3)])
    (other,) = keras.predict_raw([sequence(3)])
    np.testing.assert_allclose(one.outputs["state"], other.outputs["state"], atol=1e-4)
    assert len(list(litert.predict_raw([sequence(2), sequence(1)]))) == 2
    with pytest.raises(DataError, match="takes at most.*Convert it with a larger --length"):
        list(litert.predict_raw([sequence(4)]))


def test_the_images_of_the_tutorial_are_read_alike(digits: Path) -> None:
    files = ImageFilesParams(image_files=[str(digits / f"digit{number}.png") for number in range(3)])
    found = [
        [
            sample.outputs["pred"]
            for sample in TutorialScenario.create_predictor(digits / "model1", runtime=name).predict(files)
        ]
        for name in ("keras", "auto")
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


def test_a_training_stores_converted_models(tmp_path: Path) -> None:
    params: Any = ToyScenario.default_trainer_params()
    params.output_dir, params.epochs = tmp_path / "run", 1
    params.export_formats = [OnnxParams()]
    ToyScenario.create_trainer(params).train()
    for name in ("best", "export"):
        directory = tmp_path / "run" / name
        record = read_converted(directory)["model.onnx"]
        assert 0 <= max(record.differences.values()) <= record.tolerance == 1e-4
        verify_tree(directory)
        assert type(ToyScenario.create_predictor(directory).engine).__name__ == "OnnxRuntime"
    (tmp_path / "run" / "best" / "model.onnx").unlink()
    assert main(["resume", str(tmp_path / "run")]) == 0  # the training is finished; what is missing is added
    assert type(ToyScenario.create_predictor(tmp_path / "run" / "best").engine).__name__ == "OnnxRuntime"


def test_a_format_that_cannot_be_written_is_refused_before_a_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    command = ["train", "tests.toy.scenario", "--trainer.export_formats", "onnx"]
    assert main([*command, "--trainer.output_dir", str(tmp_path / "run")]) == 1
    assert "The format onnx needs tf2onnx: pip install 'scena[onnx]'." in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
