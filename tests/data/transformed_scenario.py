"""A scenario whose data are changed by TensorFlow on their way to the model."""

from typing import Any

from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    GraphBase,
    ModelBase,
    ModelBaseParams,
    PipelineMode,
    ScenarioBase,
    ScenarioBaseParams,
    TrainValParams,
)
from tests.data.toys import NumbersParams


class TransformedDataParams(DataBaseParams, builds=":TransformedData"):
    """Nothing to set."""


class TransformedModelParams(ModelBaseParams, builds=":TransformedModel"):
    """Nothing to set."""


class TransformedData(DataBase[TransformedDataParams]):
    """The model gets the sum of each row, in training with noise."""

    def _input_layer_specs(self) -> dict[str, Any]:
        return {"sum": ArraySpec((1,), "float32")}

    def _target_layer_specs(self) -> dict[str, Any]:
        return {"y": ArraySpec((), "float32")}

    def _input_batch_specs(self) -> dict[str, Any]:
        return {"x": ArraySpec((None,), "float32")}

    def tf_transform(self, dataset: Any, mode: PipelineMode) -> Any:
        import tensorflow as tf

        def change(element: Any) -> Any:
            total = tf.reduce_sum(element["inputs"]["x"], -1, keepdims=True)
            if mode is PipelineMode.TRAINING:
                total += tf.random.stateless_normal(tf.shape(total), element["seed"])
            return {**element, "inputs": {"sum": total}}

        return dataset.map(change)


class TransformedModel(ModelBase[TransformedModelParams]):
    """One weight."""

    def create_graph(self) -> Any:
        import keras

        class Graph(GraphBase[TransformedModelParams]):
            def __init__(self, params: TransformedModelParams, **kwargs: Any) -> None:
                super().__init__(params, **kwargs)
                self.dense = keras.layers.Dense(1)

            def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
                return {"value": self.dense(inputs["sum"])[:, 0], "doubled": inputs["sum"] * 2}

        return Graph(self.params)

    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        return {"loss": (targets["y"] - outputs["value"]) ** 2}


class TransformedScenarioParams(ScenarioBaseParams[TransformedDataParams, TransformedModelParams]):
    """Numbers."""


class Transformed(ScenarioBase[TransformedScenarioParams, TrainValParams[NumbersParams]]):
    """Numbers whose sums are learned."""
