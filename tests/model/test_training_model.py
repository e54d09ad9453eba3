"""Losses, weights, metrics and regularisation are counted as their definitions say."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    GenericGraphBase,
    GraphBase,
    ModelBase,
    ModelBaseParams,
    RootGraph,
)
from scena.backends.tensorflow.engine import TensorFlowEngine
from scena.model.built import BuiltModel

Tensors = dict[str, Any]


class NumberParams(ModelBaseParams):
    """No parameters."""


class NumberData(DataBase[DataBaseParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((1,), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((1,), "float32")}


class Scale(GraphBase[NumberParams]):
    """Multiplies by a trainable factor that starts at 2."""

    def __init__(self, params: NumberParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        two = keras.initializers.Constant(2.0)
        self.factor = layers.Dense(
            1, use_bias=False, kernel_initializer=two, kernel_regularizer=keras.regularizers.L2(0.1)
        )

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        return {"out": self.factor(inputs["x"])}


class TwoLosses(ModelBase[NumberParams]):
    def __init__(self, params: NumberParams) -> None:
        super().__init__(params)
        self.keras_loss = keras.losses.MeanAbsoluteError()
        self.largest = keras.metrics.MeanAbsoluteError()

    def create_graph(self) -> Scale:
        return Scale(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {
            "squared": keras.losses.mean_squared_error(targets["y"], outputs["out"]),
            "absolute": self.keras_loss(targets["y"], outputs["out"]),
        }

    def _loss_weights(self) -> dict[str, float]:
        return {"absolute": 0.5}

    def _sample_weights(self, inputs: Tensors, targets: Tensors) -> Tensors:
        return {"positive": ops.cast(inputs["x"] > 1, "float32")}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {
            "mean_out": outputs["out"],
            "positive": outputs["out"],
            "mae": (self.largest, targets["y"], outputs["out"]),
        }


def build(model: ModelBase[Any]) -> BuiltModel:
    return BuiltModel(NumberData(DataBaseParams()), model, model.create_root_graph())


def engine(model: keras.Model, **kwargs: Any) -> TensorFlowEngine:
    data = NumberData(DataBaseParams())
    return TensorFlowEngine(model, data.input_layer_specs(), data.target_layer_specs(), **kwargs)


def arrays(values: list[float], targets: list[float]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    return {"x": np.array(values, "float32")[None, :, None]}, {"y": np.array(targets, "float32")[None, :, None]}


@pytest.mark.parametrize("eager", [False, True])
def test_losses_are_weighted_summed_and_averaged_over_samples(eager: bool) -> None:
    model = build(TwoLosses(NumberParams())).training_model()
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    run = engine(model, eager=eager)
    run.test(*arrays([1, 2], [0, 0]))  # outputs 2 and 4: squared 4 and 16, absolute 2 and 4
    logs = run.test(*arrays([3], [0]))  # output 6: squared 36, absolute 6; a smaller batch counts as one sample
    assert logs["squared"] == pytest.approx((4 + 16 + 36) / 3)
    assert logs["absolute"] == pytest.approx((2 + 4 + 6) / 3)
    penalty = 0.1 * 2**2
    assert logs["loss"] == pytest.approx((4 + 16 + 36) / 3 + 0.5 * (2 + 4 + 6) / 3 + penalty)
    assert logs["mean_out"] == pytest.approx((2 + 4 + 6) / 3)
    assert logs["positive"] == pytest.approx((4 + 6) / 2), "samples of weight 0 do not count"
    assert logs["mae"] == pytest.approx((2 + 4 + 6) / 3)


def test_a_training_step_follows_the_gradient_of_the_weighted_sum() -> None:
    built = build(TwoLosses(NumberParams()))
    model = built.training_model()
    model.compile(optimizer=keras.optimizers.SGD(0.01))
    engine(model).train(*arrays([1.0], [0.0]))
    # d/dw of w² + 0.5·|w| + 0.1·w² at w = 2
    assert float(ops.convert_to_numpy(built.root.graph.factor.kernel)[0, 0]) == pytest.approx(
        2 - 0.01 * (4 + 0.5 + 0.4)
    )


def test_the_length_of_a_block_changes_nothing() -> None:
    results = []
    for lengths in ([1, 1, 1, 1, 1, 1], [6], [2, 4]):
        keras.utils.set_random_seed(1)
        built = build(TwoLosses(NumberParams()))
        model = built.training_model()
        model.compile(optimizer=keras.optimizers.Adam(0.1))
        run, logs, at = engine(model), [], 0
        data = np.arange(24, dtype="float32").reshape(6, 4, 1) / 7
        for length in lengths:
            logs += run.train({"x": data[at : at + length]}, {"y": -data[at : at + length]})
            at += length
        results.append((logs, ops.convert_to_numpy(built.root.graph.factor.kernel).tobytes()))
    assert results[0] == results[1] == results[2]


class Echo(GenericGraphBase[NumberParams]):
    """Sees the targets in training; in prediction it has to guess."""

    def __init__(self, params: NumberParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.dense = layers.Dense(1)

    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        return {"logits": self.dense(inputs["x"]) + 0 * targets["y"], "forced": targets["y"]}

    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        return {"guess": self.dense(inputs["x"])}

    def pre_proc_targets(self, inputs: Tensors, targets: Tensors) -> Tensors:
        return {"y": targets["y"] * 10}


class EchoModel(ModelBase[NumberParams]):
    def create_graph(self) -> Echo:
        return Echo(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": ops.square(outputs["logits"] - targets["y"])}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"target": targets["y"]}


def test_training_and_prediction_may_use_different_graphs() -> None:
    built = build(EchoModel(NumberParams()))
    assert set(built.prediction_model.output) == {"guess"}
    x = {"inputs": {"x": np.ones((1, 1), "float32")}, "targets": {"y": np.full((1, 1), 5, "float32")}}
    assert float(built.training_model()(x)["forced"][0, 0]) == 5


def test_targets_are_pre_processed_for_losses_and_metrics() -> None:
    model = build(EchoModel(NumberParams())).training_model()
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    assert engine(model).test(*arrays([1.0], [5.0]))["target"] == pytest.approx(50)


def test_validation_leaves_out_what_the_prediction_graph_does_not_have() -> None:
    model = build(EchoModel(NumberParams())).validation_model()
    assert model.measures.skipped == {"loss": ["loss"]}
    engine(model).evaluate({"x": np.ones((2, 1), "float32")}, {"y": np.full((2, 1), 5, "float32")})
    assert {name: float(value) for name, value in model.results().items()} == {"target": 50.0}


class Doubled(RootGraph):
    """Adds an output to whatever graph it holds."""

    def call(self, inputs: Tensors, targets: Tensors | None = None, training: bool | None = None) -> Tensors:
        outputs = super().call(inputs, targets, training)
        return {**outputs, "twice": 2 * outputs["out"]}


class DoubledModel(TwoLosses):
    root_graph_cls = Doubled

    def _export_graphs(self, inputs: Tensors, outputs: Tensors, targets: Tensors) -> dict[str, keras.Model]:
        return {
            **super()._export_graphs(inputs, outputs, targets),
            "only_twice": keras.Model(inputs, {"twice": outputs["twice"]}),
        }


def test_the_root_graph_and_the_exported_graphs_can_be_changed() -> None:
    built = build(DoubledModel(NumberParams()))
    x = {"x": np.ones((1, 1), "float32")}
    assert float(built.prediction_model(x)["twice"][0, 0]) == 4
    assert set(built.graphs["only_twice"](x)) == {"twice"}


class Times(RootGraph):
    """Takes a number that only the data knows."""

    def __init__(self, graph: Any, times: int, **kwargs: Any) -> None:
        super().__init__(graph, **kwargs)
        self.times = times

    def call(self, inputs: Tensors, targets: Tensors | None = None, training: bool | None = None) -> Tensors:
        return {name: self.times * output for name, output in super().call(inputs, targets, training).items()}


def test_static_parameters_of_the_root_graph() -> None:
    class Threefold(TwoLosses):
        root_graph_cls = Times

    root = Threefold(NumberParams()).create_root_graph({"times": 3})
    plain = TwoLosses(NumberParams()).create_root_graph()
    x = {"x": np.ones((1, 1), "float32")}
    assert float(root(x)["out"][0, 0]) == 3 * float(plain(x)["out"][0, 0])


def test_a_saved_archive_holds_the_graph_with_its_parameters(tmp_path: Any) -> None:
    built = build(TwoLosses(NumberParams()))
    built.prediction_model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", custom_objects={"Scale": Scale, "RootGraph": RootGraph})
    x = {"x": np.full((2, 1), 3, "float32")}
    assert np.array_equal(loaded(x)["out"], built.prediction_model(x)["out"])


class Judged(GenericGraphBase[NumberParams]):
    """Has a layer that only the training graph uses, as a GAN or an auxiliary head has."""

    def __init__(self, params: NumberParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.made, self.judge = layers.Dense(1), layers.Dense(2)

    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        return {"judged": self.judge(self.build_prediction_graph(inputs)["made"])}

    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        return {"made": self.made(inputs["x"])}


class JudgedModel(ModelBase[NumberParams]):
    def create_graph(self) -> Judged:
        return Judged(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": ops.square(outputs["judged"] - targets["y"])}


def test_weights_of_layers_that_only_the_training_graph_has_can_be_loaded(tmp_path: Any) -> None:
    trained = build(JudgedModel(NumberParams()))
    trained.training_model()
    trained.prediction_model.save(tmp_path / "model.keras")
    loaded = build(JudgedModel(NumberParams()))
    loaded.load_weights(tmp_path / "model.keras")
    for name in ("made", "judge"):
        kernels = [getattr(built.root.graph, name).kernel for built in (trained, loaded)]
        assert np.array_equal(*(ops.convert_to_numpy(kernel) for kernel in kernels))
