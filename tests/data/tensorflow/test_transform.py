"""Transformations of batches in TensorFlow: batches, cursors, workers, restarts, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.data import ArraySpec, Cursor, DataBase, DataBaseParams, DataError, DataPipelineParams, PipelineMode
from tests.data.toys import NumbersParams

tf = pytest.importorskip("tensorflow")


class Numbers(DataBase[DataBaseParams]):
    """Sums of the padded rows, with noise; the rows themselves never reach the model."""

    change: Callable[[Any], Any]

    def _input_layer_specs(self) -> dict[str, Any]:
        return {"sum": ArraySpec((), "float32")}

    def _target_layer_specs(self) -> dict[str, Any]:
        return {"y": ArraySpec((), "int64")}

    def _input_batch_specs(self) -> dict[str, Any]:
        return {"x": ArraySpec((None,), "float32")}

    def tf_transform(self, dataset: Any, mode: PipelineMode) -> Any:
        return self.change(dataset)


def noisy(element: Any) -> Any:
    total = tf.reduce_sum(element["inputs"]["x"], -1)
    noise = tf.random.stateless_uniform(tf.shape(total), element["seed"])
    return {**element, "inputs": {"sum": total + noise}}


def without_numbers(element: Any) -> Any:
    return {"inputs": element["inputs"], "targets": element["targets"]}


CHANGES: dict[str, Callable[[Any], Any]] = {
    "map": lambda dataset: dataset.map(noisy, num_parallel_calls=3),
    "filter": lambda dataset: dataset.map(noisy).filter(lambda element: element["batch"] % 2 == 0).prefetch(2),
    "regroup": lambda dataset: dataset.map(noisy).map(without_numbers).unbatch().shuffle(9, seed=3).batch(3),
}


def pipeline(change: Callable[[Any], Any], processes: int = 0, **options: Any) -> Any:
    data = Numbers(DataBaseParams())
    data.change = change
    params = DataPipelineParams(batch_size=4, num_processes=processes, **options)
    return data.create_pipeline(PipelineMode.TRAINING, params, NumbersParams(), seed=7)


def read(made: Any, count: int, cursor: Cursor | None = None) -> list[Any]:
    with made.stream(cursor) as stream:
        batches = [next(stream) for _ in range(count)]
    made.close()
    return [
        (b.cursor.to_json(), b.inputs["sum"].tolist(), b.targets["y"].tolist(), b.meta if b.meta[0] else None)
        for b in batches
    ]


@pytest.mark.parametrize("name", CHANGES)
def test_it_restarts_at_every_batch_and_with_workers(name: str) -> None:
    whole = read(pipeline(CHANGES[name]), 14)
    assert len({str(row[1]) for row in whole}) == 14
    assert {row[0]["epoch"] for row in whole} >= {0, 1}
    assert read(pipeline(CHANGES[name], processes=1), 14) == whole
    for place in (0, 3, 5, 8):
        assert read(pipeline(CHANGES[name]), 13 - place, Cursor.from_json(whole[place][0])) == whole[place + 1 :]


def test_the_length_of_an_epoch_is_known_where_tf_data_knows_it() -> None:
    assert pipeline(CHANGES["map"]).batches_per_epoch() == 6
    assert pipeline(lambda dataset: dataset.map(noisy).take(2)).batches_per_epoch() == 2
    assert pipeline(CHANGES["filter"]).batches_per_epoch() is None


def test_values_are_those_of_the_samples() -> None:
    rows = read(pipeline(CHANGES["map"], shuffle_buffer_size=0), 1)[0]
    lengths = np.array([(index * 7) % 5 + 1 for index in range(4)])
    assert np.all(np.floor(rows[1]) == np.arange(4) * lengths)
    assert rows[2] == [0, 1, 2, 3]
    assert rows[3] == [{"id": index} for index in range(4)]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda dataset: dataset, r"gives the inputs \['x'\]; the model takes \['sum'\]"),
        (lambda dataset: dataset.map(lambda e: e["inputs"]), "must return a dataset of dicts with 'inputs' and 'targets'"),
        (lambda dataset: dataset.map(lambda e: {**e, "inputs": {"sum": e["inputs"]["x"]}}), r"float32 of shape \(None, None\)"),
        (
            lambda dataset: dataset.map(lambda e: {**noisy(e), "batch": -e["batch"]}),
            "gives batch -1 after batch 0: it changes their order",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(change: Callable[[Any], Any], text: str) -> None:
    with pytest.raises((DataError, ValueError), match=text):
        read(pipeline(change), 3)


def test_an_error_within_tensorflow_arrives() -> None:
    def failing(element: Any) -> Any:
        with tf.control_dependencies([tf.debugging.Assert(element["batch"] < 2, ["too far"])]):
            return noisy(element)

    with pytest.raises(DataError, match="tf_transform failed: .*too far"):
        read(pipeline(lambda dataset: dataset.map(failing)), 4)


@pytest.mark.parametrize("seed", [None, 5], ids=["no seed", "a seed that counts calls"])
def test_one_that_is_not_deterministic_is_not_restarted(seed: int | None) -> None:
    def random(element: Any) -> Any:
        made = noisy(element)
        return {**made, "inputs": {"sum": made["inputs"]["sum"] + tf.random.uniform([], seed=seed)}}

    made = pipeline(lambda dataset: dataset.map(random))
    rows = read(made, 3)
    with pytest.raises(
        DataError, match=r"Numbers.tf_transform gives something else each time.*after batch 3 of epoch 0"
    ):
        read(made, 1, Cursor.from_json(rows[-1][0]))
    assert read(made, 1, Cursor(epoch=1))


def test_a_training_resumes_exactly_and_predicts_with_it(tmp_path: Path) -> None:
    from tests.data.transformed_scenario import Transformed

    def train(folder: str, epochs: int, **options: Any) -> Any:
        params = Transformed.default_trainer_params()
        params.epochs, params.output_dir, params.random_seed = epochs, tmp_path / folder, 1
        trainer = Transformed.create_trainer(params)
        return trainer.train(**options)

    whole = train("whole", 3)
    train("parts", 1)
    assert [row["loss"] for row in train("parts", 3, resume=True)] == [row["loss"] for row in whole]
    predictor = Transformed.create_predictor(tmp_path / "parts" / "best")
    from scena.data import Sample

    (sample,) = predictor.predict_raw([Sample({"x": np.array([1, 2, 3], np.float32)})])
    np.testing.assert_allclose(sample.outputs["doubled"], [12.0])
