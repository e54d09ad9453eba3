"""Exports: self-contained, movable, readable without Scena; other formats are checked; adapted models keep their weights."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.saving import saving_lib

from scena import PredictorParams, Resource, Sample
from scena.commands.main import main
from scena.errors import ConversionError
from scena.prediction.formats import keras as keras_format
from scena.prediction.formats import litert as litert_format
from scena.prediction.formats import onnx as onnx_format
from scena.prediction.formats.base import convertible
from scena.scenario.exporting import write_model
from tests.evaluation.exporting import export
from tests.prediction.scenarios import TextScenario, sequence
from tests.toy.scenario import ToyScenario

ROOT = Path(__file__).parents[2]
TOY = ["--scenario", "tests.toy.scenario"]
TEXT = ["--scenario", "tests.prediction.scenarios"]
ONES = {"x": np.ones((3, 8), "float32")}


def recurrent() -> Any:
    params = TextScenario.default_trainer_params()
    params.scenario.model.recurrent = True
    return params


@pytest.fixture
def toy(exports: list[Path], tmp_path: Path) -> Path:
    shutil.copytree(exports[0], tmp_path / "toy")
    return tmp_path / "toy"


def test_an_export_moves_with_its_resources(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("left right")
    params = ToyScenario.default_trainer_params()
    params.scenario.data.names = Resource(names)
    directory = export(tmp_path / "run" / "export", 1, ToyScenario, params)
    names.unlink()
    moved = tmp_path / "elsewhere" / "model"
    moved.parent.mkdir()
    directory.rename(moved)
    predictor = ToyScenario.create_predictor(moved, PredictorParams())
    assert predictor.data.names() == ["left", "right"]
    description = json.loads((moved / "scenario.json").read_text())
    assert description["versions"]["keras"] == keras.__version__
    assert description["params"]["data"]["names"] == "resources/names.txt"
    names = ["checksums.json", "model.keras", "resources", "saved_model", "scenario.json"]
    assert sorted(path.name for path in moved.iterdir()) == names


def test_writing_a_model_makes_no_layers(tmp_path: Path) -> None:
    """Keras makes one for each layer it writes, to see which attributes to leave out, and forgets the answer.

    Once the first line fails Keras has repaired that, and `remember_skipped_attributes` can go.
    """
    assert saving_lib.get_attr_skipset("Loss") is not saving_lib.get_attr_skipset("Loss")

    def made() -> int:
        return int(keras.layers.Layer().name.removeprefix("layer_"))

    built = ToyScenario(ToyScenario.default_trainer_params().scenario).build()
    write_model(tmp_path, built)
    before = made()
    write_model(tmp_path, built)
    assert made() == before + 1


PLAIN = """
import sys
sys.modules["scena"] = None  # whoever imports it now fails
import numpy as np, tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
serve = model.signatures["serving_default"]
assert sorted(serve.structured_input_signature[1]) == ["x"], serve.structured_input_signature
outputs = serve(x=tf.ones((3, 8)))
assert not [name for name in sys.modules if name.startswith(("tests", "keras.src.models.functional_scena"))]
print(outputs["pred"].numpy().tolist())
"""


def test_a_saved_model_answers_without_scena(toy: Path) -> None:
    moved = toy.with_name("saved")
    shutil.move(toy / "saved_model", moved)
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, str(moved)], capture_output=True, text=True, cwd="/", check=False
    )
    assert done.returncode == 0, done.stderr
    predictor = ToyScenario.create_predictor(toy)
    expected = [predictor.predict_sample(Sample(inputs={"x": row})).outputs["pred"] for row in ONES["x"]]
    np.testing.assert_allclose(json.loads(done.stdout), expected, atol=1e-6)


PLAIN_KERAS = """
import sys
sys.path = [path for path in sys.path if path not in ("", sys.argv[1])]
import importlib.util
assert importlib.util.find_spec("scena") is None
import json, keras
found = {}
for path in sys.argv[2:]:
    model = keras.saving.load_model(path)
    inputs = {name: keras.ops.ones((3, *(size or 4 for size in tensor.shape[1:])), tensor.dtype) for name, tensor in model.input.items()}
    found[path] = {name: keras.ops.convert_to_numpy(value).tolist() for name, value in model(inputs).items()}
print(json.dumps(found))
"""


def test_plain_keras_opens_what_the_format_keras_writes(toy: Path, tmp_path: Path) -> None:
    """In an interpreter that finds neither Scena nor the scenario."""
    text = export(tmp_path / "text", 1, TextScenario, recurrent())
    assert main(["export", str(toy), *TOY, "--format", "keras", "--out", f"{tmp_path}/plain_toy"]) == 0
    assert main(["export", str(text), *TEXT, "--format", "keras", "--out", f"{tmp_path}/plain_text"]) == 0
    files = [tmp_path / "plain_toy/plain.keras", *sorted((tmp_path / "plain_text").iterdir())]
    assert [path.name for path in files] == ["plain.keras", "plain.keras", "plain_sums.keras"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", PLAIN_KERAS, str(ROOT), *map(str, files)],
        capture_output=True, text=True, cwd="/", check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = ToyScenario.create_predictor(toy).built.prediction_model(ONES)["pred"]
    np.testing.assert_allclose(found[str(files[0])]["pred"], expected, atol=1e-6)
    expected = TextScenario.create_predictor(text).built.prediction_model({"x": np.ones((3, 4), "float32")})["state"]
    np.testing.assert_allclose(found[str(files[1])]["state"], expected, atol=1e-5)
    assert found[str(files[2])] == {"total": [4.0, 4.0, 4.0]}


def test_the_format_keras_says_what_it_cannot_write(tmp_path: Path) -> None:
    class Scaled(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.scale = self.add_weight(shape=(1,))

        def call(self, x: Any) -> Any:
            return x * self.scale

    class Around(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return tf.nn.relu(x)

    class Doubled(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return 2 * x

        def compute_output_shape(self, shape: Any) -> Any:
            return shape

    inputs = keras.Input((4,), name="x")
    for layer, message in (
        (Scaled(), r"The layer Scaled \(.*\) has weights of its own, .* --format saved_model keeps it as it is"),
        (Around(), "cannot be written in Keras' own layers: .* --format saved_model keeps it as it is"),
        (keras.layers.Lambda(lambda x: x), "A Lambda layer holds Python code"),
        (keras.layers.TimeDistributed(Doubled()), "Doubled is inside a layer of Keras"),
    ):
        tensor = layer(keras.ops.expand_dims(inputs, -1))
        with pytest.raises(ConversionError, match=message):
            keras_format.write_plain(keras.Model({"x": inputs}, {"y": tensor}), tmp_path / "x.keras")


@pytest.mark.parametrize("order", ["scena, tests.toy.scenario, keras", "keras, scena, tests.toy.scenario"])
def test_keras_loads_the_file_of_an_export(toy: Path, order: str) -> None:
    """Once Scena and the scenario are imported, in any order, in a process that has built nothing; nothing is imported before."""
    script = f"""
import sys, {order}
import json
assert "tests.toy.model" not in sys.modules
model = keras.saving.load_model(sys.argv[1])
print(json.dumps(keras.ops.convert_to_numpy(model({{"x": keras.ops.ones((3, 8))}})["pred"]).tolist()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(toy / "model.keras")], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    expected = ToyScenario.create_predictor(toy).built.prediction_model(ONES)["pred"]
    np.testing.assert_allclose(json.loads(done.stdout), expected, atol=1e-6)


def test_additional_graphs_are_exported(tmp_path: Path) -> None:
    directory = export(tmp_path / "text", 1, TextScenario)
    assert {path.name for path in directory.iterdir()} == {
        "checksums.json", "model.keras", "model_sums.keras", "saved_model", "saved_model_sums", "scenario.json",
    }  # fmt: skip
    serve = tf.saved_model.load(str(directory / "saved_model_sums")).signatures["serving_default"]
    assert {name: value.numpy().tolist() for name, value in serve(x=tf.ones((2, 3))).items()} == {"total": [3.0, 3.0]}


def test_tensorrt_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is loaded: there need not even be a model."""
    assert main(["export", "nowhere", "--format", "tensorrt"]) != 0
    error = capsys.readouterr().err
    assert "--format tensorrt needs an NVIDIA GPU, TensorRT and onnxruntime-gpu" in error
    assert "This onnxruntime has only" in error and "Here --format onnx writes what they are built from" in error


def test_all_formats_are_written_and_checked(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(toy / "saved_model")
    assert main(["export", str(toy), *TOY, "--format", "saved_model", "onnx", "litert"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["saved_model", "onnx", "litert"]
    assert all("on 16 samples" in line and "tolerance 0.0001" in line and "pred" in line for line in lines)
    assert {"saved_model", "model.onnx", "model.tflite"} <= {path.name for path in toy.iterdir()}
    assert not list(toy.glob(".converting*"))

    import onnxruntime

    session = onnxruntime.InferenceSession(toy / "model.onnx", providers=["CPUExecutionProvider"])
    expected = ToyScenario.create_predictor(toy, runtime="keras").built.prediction_model(ONES)["pred"]
    np.testing.assert_allclose(session.run(["pred"], ONES)[0], expected, atol=1e-5)


@pytest.mark.parametrize("quantize", ["float16", "dynamic", "int8"])
def test_litert_is_quantised(toy: Path, quantize: str) -> None:
    assert main(["export", str(toy), *TOY, "--format", "litert", "--quantize", quantize]) == 0
    assert (toy / f"model.{quantize}.tflite").is_file()


def test_a_model_that_answers_otherwise_is_not_kept(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", str(toy), *TOY, "--format", "litert", "--quantize", "int8", "--tolerance", "1e-9"]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert "model.int8.tflite gives other answers than the model: the output" in error
    assert "the tolerance of 1e-09" in error
    assert not list(toy.glob("*.tflite"))


def test_a_recurrent_model_goes_to_litert_at_a_fixed_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = export(tmp_path / "text", 1, TextScenario, recurrent())
    assert main(["export", str(directory), *TEXT, "--format", "litert"]) == 1
    assert "LiteRT needs inputs of a fixed size, but 'x' of 'default' has a variable axis." in capsys.readouterr().err
    assert main(["export", str(directory), *TEXT, "--format", "litert", "onnx", "--length", "4"]) == 0
    assert {"model.tflite", "model_sums.tflite", "model.onnx", "model_sums.onnx"} <= {
        path.name for path in directory.iterdir()
    }

    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(str(directory / "model.tflite")).get_signature_runner("serving_default")
    (sample,) = TextScenario.create_predictor(directory).predict_raw([sequence(3)])
    np.testing.assert_allclose(runner(x=sample.inputs["x"][None])["state"][0], sample.outputs["state"], atol=1e-5)


def test_what_a_format_lacks_is_named(tmp_path: Path) -> None:
    inputs = keras.Input((4,), name="x")
    bits = keras.layers.Lambda(lambda x: tf.bitwise.bitwise_and(tf.bitcast(x, tf.int32), 255), output_shape=(4,))
    graph = keras.Model({"x": inputs}, {"y": bits(inputs)})
    with pytest.raises(ConversionError, match="LiteRT: LiteRT has no operation BitwiseAnd"):
        litert_format.write_litert(graph, tmp_path / "x.tflite", None, None, {})
    with pytest.raises(ConversionError, match="Bitcast"):
        onnx_format.write_onnx(graph, tmp_path / "x.onnx")
        onnx_format.open_onnx(tmp_path / "x.onnx")


def test_the_change_for_argmax_is_still_needed() -> None:
    """When this fails, `convertible` has done its work and can go."""
    function = tf.function(keras.ops.argmax).get_concrete_function(tf.TensorSpec((None, 3)))
    assert "Bitcast" in {operation.type for operation in function.graph.get_operations()}
    with convertible():
        function = tf.function(lambda x: keras.ops.argmax(x, axis=-1)).get_concrete_function(tf.TensorSpec((None, 3)))
    assert "Bitcast" not in {operation.type for operation in function.graph.get_operations()}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "--format is required: keras, saved_model, onnx, openvino, litert or tensorrt, or several of them"),
        (["--format", "onnx", "--quantize", "int8"], "--quantize is for --format litert only; received: onnx"),
        (["--format", "onx"], "onx"),
    ],
)
def test_wrong_flags_are_named(toy: Path, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(toy), *TOY, *flags]) == 2
    assert message in capsys.readouterr().err


def test_adapt_keeps_the_weights(toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tmp_path / "names.txt"
    names.write_text("left right")
    new = tmp_path / "new"
    assert main(["adapt", str(toy), *TOY, "--out", str(new), "--data.names", str(names), "--model.l2", "0.5"]) == 0
    adapted = ToyScenario.create_predictor(new)
    assert adapted.data.names() == ["left", "right"]
    assert adapted.built.model.params.l2 == 0.5
    sample = Sample(inputs={"x": np.ones(8, "float32")})
    expected = ToyScenario.create_predictor(toy).predict_sample(sample).outputs["pred"]
    np.testing.assert_array_equal(adapted.predict_sample(sample).outputs["pred"], expected)
    capsys.readouterr()
    assert main(["adapt", str(toy), *TOY, "--out", str(new)]) == 1
    assert "exists already. Choose another --out" in capsys.readouterr().err


def test_adapt_refuses_other_shapes(toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adapt", str(toy), *TOY, "--out", str(tmp_path / "new"), "--model.units", "5"]) == 1
    error = capsys.readouterr().err
    assert "would have the shape (8, 5), but the stored one has (8, 4)" in error
    assert not (tmp_path / "new").exists()
    text = export(tmp_path / "text", 1, TextScenario)
    assert main(["adapt", str(text), *TEXT, "--out", str(tmp_path / "new"), "--model.recurrent"]) == 1
    assert "the changed model has 4 weights, the stored one 1" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_named_before_the_work(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["export", str(toy), *TOY, "--format", "onnx", "--out", f"{tmp_path}/file"]) == 1
    assert f"scena export: error: Cannot write to --out {tmp_path}/file: File exists." in capsys.readouterr().err
    assert main(["adapt", str(toy), *TOY, "--out", f"{tmp_path}/file/new"]) == 1
    assert f"scena adapt: error: Cannot write to --out {tmp_path}/file: File exists." in capsys.readouterr().err
