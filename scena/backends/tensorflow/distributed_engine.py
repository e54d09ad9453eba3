"""Runs step blocks on several replicas: each takes its part of every batch, and all end with the same weights.

As on one device, the number of steps in a block never changes results.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from scena.backends.base import Arrays, Specs
from scena.backends.tensorflow.distribution import Distribution
from scena.backends.tensorflow.engine import block_signature, pick
from scena.backends.tensorflow.replica import (
    ReplicaSeeds,
    ReplicaStep,
    all_sums,
    copy_first,
    spread,
    undivided_losses,
    values_of_metrics,
)
from scena.errors import ModelError
from scena.model.metric_learning.replicas import replica_step
from scena.model.state.layer_state import Layers
from scena.model.state.randomness import global_seed_generator, use_global_seed
from scena.model.training_model import TrainingModel


class DistributedEngine:
    """Trains and validates one model on several devices or in several processes.

    Args:
        models: the model of each replica of this process, compiled with an optimizer that sums gradients.
    """

    def __init__(
        self, distribution: Distribution, models: list[TrainingModel], input_specs: Specs, target_specs: Specs
    ) -> None:
        check_models(models[0])
        self.distribution = distribution
        self._models = models
        self._names: dict[str, list[str]] = {}
        generators = [global_seed_generator()] + [_another_generator(device) for device in distribution.devices[1:]]
        self._seeds = [ReplicaSeeds(one, distribution.first + index) for index, one in enumerate(generators)]
        counts = tf.TensorSpec((None,), tf.float32)
        signature = [block_signature(input_specs, target_specs), counts, counts]
        flag = tf.TensorSpec((), tf.float32)

        self._train = tf.function(self._train_steps, input_signature=[*signature, flag])
        self._test = tf.function(self._test_steps, input_signature=signature)
        self._collect = tf.function(self._collect_step, input_signature=[])
        self._spread = tf.function(self._spread_step, input_signature=[])
        self._agree = tf.function(self._agree_step, input_signature=[counts])

    def train(
        self, inputs: Arrays, targets: Arrays, counted: Any, total: Any, flag: float = 0.0
    ) -> tuple[list[dict[str, float]], float]:
        """Runs one training step for each batch of a block.

        Args:
            inputs: this process's part of each batch, with a leading axis of batches.
            targets: the same.
            counted: how many samples of each part count.
            total: how many samples each whole batch has.
            flag: a number that is summed over all processes.

        Returns:
            The logs of each step, and the largest sum of flags.
        """
        block = {"inputs": inputs, "targets": targets}
        with self.distribution.naming_lost_workers():
            rows = self._train(block, _floats(counted), _floats(total), tf.constant(flag, tf.float32)).numpy()
        names = self._names["train"]
        return [dict(zip(names, row.tolist(), strict=False)) for row in rows], float(rows[:, -1].max())

    def common_steps(self, ready: int, most: int) -> int:
        """How many steps all processes can take in one call: TensorFlow numbers collective operations by their turn in the loop, so a loop
        that ends earlier in one process would leave the others waiting forever.

        Args:
            ready: how many steps this process could take.
            most: how many there are to take, the same everywhere.
        """
        if self.distribution.cluster is None:
            return ready
        with self.distribution.naming_lost_workers():
            sums = self._agree(_floats(np.arange(most) < ready)).numpy()
        return int(np.count_nonzero(sums == self.distribution.strategy.num_replicas_in_sync))

    def test(self, inputs: Arrays, targets: Arrays, counted: Any, total: Any) -> None:
        """Runs one validation step for each batch of a block; `collect` has the results."""
        self._test({"inputs": inputs, "targets": targets}, _floats(counted), _floats(total))

    def collect(self) -> dict[str, float]:
        """The values of a validation over all replicas."""
        with self.distribution.naming_lost_workers():
            row = self._collect().numpy()
        return dict(zip(self._names["test"], row.tolist(), strict=True))

    def pack_layers(self) -> bytes:
        """The layer states of the first replica; empty if there are none."""
        return Layers(self._models[0].root, self._models[0]).pack()

    def begin(self, layers: bytes) -> None:
        """Copies the layer state of the first replica to all and compiles. Call it before everything else.

        Args:
            layers: the result of `pack_layers` in the chief.
        """
        for model in self._models[1:] if self.distribution.chief else self._models:
            Layers(model.root, model).unpack(layers)
        with undivided_losses():
            for function in (self._spread, self._agree, self._train, self._test, self._collect):
                function.get_concrete_function()  # now: all processes must number their collective operations in the same order

    def spread(self) -> None:
        """Copies the state of the first replica to all: weights, optimizer, metrics, seeds."""
        with self.distribution.naming_lost_workers():
            self._spread()

    def graph(self) -> Any:
        """The TensorFlow graph of a step block."""
        return self._train.get_concrete_function().graph

    # ---- compiled ---------------------------------------------------------------------------------------------------

    def _train_steps(self, block: Any, counted: Any, total: Any, flag: Any) -> tf.Tensor:
        count = tf.shape(counted)[0]
        rows = tf.TensorArray(tf.float32, size=count)
        for i in tf.range(count):
            row = self._each(self._train_replica, (pick(block, i), counted[i], total[i], flag))
            rows = rows.write(i, row)
        return rows.stack()

    def _test_steps(self, block: Any, counted: Any, total: Any) -> tf.Tensor:
        count = tf.shape(counted)[0]
        for i in tf.range(count):
            self._each(self._test_replica, (pick(block, i), counted[i], total[i]))
        return count

    def _each(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """Runs a function as each replica of this process; returns the result of the first."""
        results = self.distribution.strategy.run(function, args=arguments)
        return self.distribution.strategy.experimental_local_results(results)[0]

    def _replica_index(self) -> tuple[int, int]:
        """The index of this replica among all, and in this process."""
        context = tf.distribute.get_replica_context()
        number = int(tf.get_static_value(tf.convert_to_tensor(context.replica_id_in_sync_group)))
        return number, number - self.distribution.first

    def _part(self, batch: Any, counted: Any, total: Any, index: int) -> tuple[Any, tf.Tensor]:
        """The replica's rows of a batch and its share of the whole; one row and a share of 0 if it has none."""
        size = tf.shape(tf.nest.flatten(batch)[0])[0]
        replicas = len(self.distribution.devices)
        start, stop = size * index // replicas, size * (index + 1) // replicas
        rows = tf.cast(stop - start, tf.float32)
        share = tf.where(counted > 0, rows / total, 0.0)
        if replicas > 1:
            batch = tf.nest.map_structure(lambda tensor: tensor[start : tf.maximum(stop, start + 1)], batch)
        return batch, share

    def _train_replica(self, batch: Any, counted: Any, total: Any, flag: Any) -> tf.Tensor:
        _, index = self._replica_index()
        model = self._models[index]
        part, share = self._part(batch, counted, total, index)
        step = ReplicaStep(model, share, flag if index == 0 else tf.zeros_like(flag))
        with use_global_seed(self._seeds[index]), replica_step(step):
            logs = step.logs(model.train_step((part,)))
        self._names["train"] = list(logs)
        return tf.stack([*(tf.cast(value, tf.float32) for value in logs.values()), step.flag])

    def _test_replica(self, batch: Any, counted: Any, total: Any) -> tf.Tensor:
        _, index = self._replica_index()
        model = self._models[index]
        part, share = self._part(batch, counted, total, index)
        before = [tf.identity(variable.value) for variable in model.metrics_variables]
        with use_global_seed(self._seeds[index]):
            logs = model.test_step((part,))
        for variable, value in zip(model.metrics_variables, before, strict=True):
            variable.assign(tf.where(share > 0, variable.value, value))
        self._names["test"] = [name for name in logs if name in values_of_metrics(model)]
        return share

    def _collect_step(self) -> tf.Tensor:
        def replica() -> tf.Tensor:
            model = self._models[self._replica_index()[1]]
            variables = model.metrics_variables
            sums = all_sums([tf.cast(variable.value, tf.float64) for variable in variables])
            for variable, value in zip(variables, sums, strict=True):
                variable.assign(tf.cast(value, variable.dtype))
            known = values_of_metrics(model)
            return tf.stack([tf.cast(known[name], tf.float32) for name in self._names["test"]])

        return self._each(replica, ())

    def _agree_step(self, ready: Any) -> tf.Tensor:
        return self._each(lambda values: all_sums([values])[0], (ready,))

    def _spread_step(self) -> tf.Tensor:
        def replica() -> tf.Tensor:
            number, index = self._replica_index()
            model = self._models[index]
            state = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
            spread(list({id(variable): variable for variable in state}.values()), number)
            copy_first(self._seeds[index].state, number)
            return tf.constant(0)

        return self._each(replica, ())


def check_models(model: TrainingModel) -> None:
    """Raises ModelError for a model whose own steps cannot be distributed."""
    for name, value in vars(model).items():
        if isinstance(value, keras.optimizers.Optimizer) and value is not model.optimizer:
            raise ModelError(
                f"{type(model).__name__} has an optimizer of its own ({name}), whose gradients are not summed over the devices. "
                "It cannot be trained with --device.dist_strategy; train it on one device."
            )


def _another_generator(device: str) -> keras.random.SeedGenerator:
    with tf.device(device):
        return keras.random.SeedGenerator(0)


def _floats(values: Any) -> tf.Tensor:
    return tf.constant(np.asarray(values, np.float32))
