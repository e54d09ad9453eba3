"""Calls of converted models: their size is measured, and changes no answer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.tutorial.full.scenario import TutorialScenario
from scena import PredictorParams, Sample, load_digits
from scena.data.params import DataPipelineParams
from scena.data.sample import Batch
from scena.prediction.converted import read_converted
from scena.prediction.predictor import Predictor
from scena.storage.run_layout import CONVERTED_FILE

RUNTIMES = ["onnx", "openvino", "litert"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_calls_of_any_size_give_the_same_answers(digits: Path, model: Path, runtime: str) -> None:
    measured = [record.call_size for record in read_converted(model).values()]
    assert len(measured) == 3 and all(size in (16, 32, 64, 128, 256) for size in measured)
    images, classes = (part[:100] for part in load_digits("digits", "test"))
    pairs = list(zip(images, classes, strict=True))
    samples = [Sample({"img": image}, {"gt": np.uint8(digit)}, meta=digit) for image, digit in pairs]
    wanted = TutorialScenario.create_predictor(digits / "model1", runtime="keras").engine.predict({"img": images})
    # small batches are predicted together, large ones in parts that are about equal
    expected = {(7, None): 15, (7, 16): 7, (7, 32): 4, (50, None): 2, (50, 16): 8, (50, 32): 4}
    for (batch_size, call_size), calls in expected.items():
        set_call_size(model, call_size)
        pipeline = DataPipelineParams(batch_size=batch_size, num_processes=0)
        params = PredictorParams(pipeline=pipeline, include_targets=True)
        predictor = TutorialScenario.create_predictor(model, params, runtime=runtime)
        sizes = sizes_of_calls(predictor.engine)
        found = list(predictor.predict_raw(samples))
        assert len(sizes) == calls and sum(sizes) == 100
        assert [sample.meta for sample in found] == list(classes)
        np.testing.assert_allclose([sample.outputs["pred"] for sample in found], wanted["pred"], atol=1e-4)


def sizes_of_calls(engine: Any) -> list[int]:
    """A list that gets the number of samples of each call from now on."""
    sizes: list[int] = []
    original = engine._predict

    def predict(inputs: Any) -> Any:
        sizes.append(len(inputs["img"]))
        return original(inputs)

    engine._predict = predict
    return sizes


def set_call_size(model: Path, size: int | None) -> None:
    """Writes the size of calls into the descriptions of converted models; None: as older exports, which have none."""
    file = model / CONVERTED_FILE
    content = json.loads(file.read_text())
    content.pop("checksum", None)
    for record in content["models"].values():
        record["call_size"] = size
        if size is None:
            del record["call_size"]
    file.write_text(json.dumps(content))


def test_an_overridden_predict_batch_gets_the_batches_that_were_asked_for(model: Path) -> None:
    set_call_size(model, 32)
    sizes: list[int] = []

    class Own(Predictor):
        def predict_batch(self, batch: Batch) -> dict[str, np.ndarray]:
            sizes.append(batch.size)
            return super().predict_batch(batch)

    params = PredictorParams(pipeline=DataPipelineParams(batch_size=7, num_processes=0), include_targets=True)
    predictor = Own(params, TutorialScenario.create_predictor(model, runtime="onnx").built)
    images = load_digits("digits", "test")[0][:20]
    samples = [Sample({"img": image}, {"gt": np.uint8(0)}) for image in images]
    assert len(list(predictor.predict_raw(samples))) == 20
    assert sizes == [7, 7, 6]
