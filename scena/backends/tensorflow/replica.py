"""One step of one replica: its part of the batch, and the all-reduce before the weights change.

Gradients are summed over the replicas, each weighted by its share of the batch, before the optimizer sees them. So clipping,
accumulation, loss scaling and averages work as on one device. Changes of metrics are summed in the same all-reduce.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from scena.backends.tensorflow.penalty import InputGradientPenalty

SEED_STATE = "seed_generator_state"
SEED_STRIDE = 0x9E3779B9
"""Added to the seeds from replica to replica, so that each draws other numbers (the golden ratio of 32 bits)."""


class ReplicaStep:
    """A training step of one replica while it runs (or is compiled).

    Args:
        model: the replica's model.
        share: its share of the whole batch; 0 if it only takes part in the all-reduce.
        flag: a number that is summed over all replicas.
    """

    def __init__(self, model: keras.Model, share: tf.Tensor, flag: tf.Tensor) -> None:
        self._model = model
        self._share = share
        self.flag = flag
        self._flag_sent = False
        self._metrics = list(model.metrics_variables)
        counted = {id(variable) for variable in self._metrics}
        self._statistics = [
            variable
            for variable in model.non_trainable_variables
            if id(variable) not in counted and "float" in str(variable.dtype)
        ]
        self._before = self._values()

    @property
    def share(self) -> tf.Tensor:
        """This replica's share of the whole batch. Changes of statistics are weighted by it, so that they are means."""
        return self._share

    def reduce(self, gradients: list[Any]) -> list[Any]:
        """The gradients of the whole batch; also synchronizes metrics and statistics over all replicas."""
        present = [tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None]
        weighted = [tf.math.multiply_no_nan(one, tf.cast(self._share, one.dtype)) for one in present]
        summed = iter(self.exchange(weighted))
        return [None if gradient is None else next(summed) for gradient in gradients]

    def exchange(self, more: list[tf.Tensor]) -> list[tf.Tensor]:
        """Sums changes of metrics since the last call over all replicas, and some more tensors, which are returned."""
        takes_part = tf.cast(self._share > 0, tf.float32)
        changes = [after - before for before, after in zip(self._before, self._values(), strict=True)]
        count = len(self._metrics)
        sent = [tf.math.multiply_no_nan(one, tf.cast(takes_part, one.dtype)) for one in changes[:count]]
        sent += [tf.math.multiply_no_nan(one, tf.cast(self._share, one.dtype)) for one in changes[count:]]
        flag = tf.zeros_like(self.flag) if self._flag_sent else self.flag
        summed = all_sums([*more, *sent, flag])
        self.flag = self.flag if self._flag_sent else summed[-1]
        self._flag_sent = True
        known: list[Any] = []
        changed = summed[len(more) : -1]
        for variable, before, change in zip(self._variables(), self._before, changed, strict=True):
            known.append(before + change)
            variable.assign(tf.cast(known[-1], variable.dtype))
        self._before = known
        return summed[: len(more)]

    def logs(self, logs: dict[str, Any]) -> dict[str, Any]:
        """The logs of a training step for the whole batch."""
        if self._flag_sent and type(self._model).train_step in _COUNTS_BEFORE:
            return logs
        known = values_of_metrics(self._model)
        foreign = [name for name in logs if name not in known]
        values = [tf.math.multiply_no_nan(tf.cast(logs[name], tf.float32), self._share) for name in foreign]
        means = dict(zip(foreign, self.exchange(values), strict=True))
        known = values_of_metrics(self._model)
        return {name: means.get(name, known.get(name)) for name in logs}

    def _variables(self) -> list[keras.Variable]:
        return [*self._metrics, *self._statistics]

    def _values(self) -> list[tf.Tensor]:
        return [_summable(variable.value) for variable in self._variables()]


_COUNTS_BEFORE = (keras.Model.train_step, InputGradientPenalty.train_step)
"""train_steps that update no metric after `apply_gradients`, so that a single all-reduce is enough."""


@contextmanager
def undivided_losses() -> Iterator[None]:
    """Inside, a called `keras.losses.Loss` is compiled as the mean that it is on one device.

    Keras divides it by the number of replicas, for loops that sum over them; here gradients are weighted when they are summed, and
    logged values would be too small. There is no public switch for it.
    """
    from keras.src.losses import loss as keras_loss

    divide = keras_loss.scale_loss_for_distribution
    keras_loss.scale_loss_for_distribution = lambda value: value
    try:
        yield
    finally:
        keras_loss.scale_loss_for_distribution = divide


def values_of_metrics(model: Any) -> dict[str, Any]:
    """The running values of all metrics of a model, by the name they are logged under."""
    return {**{metric.name: metric.result() for metric in _plain(model)}, **model.results()}


def _plain(model: Any) -> list[Any]:
    """Metrics other than those of `results`, such as those of a model with its own `train_step`, without those with several results."""
    return [
        metric
        for metric in model.metrics
        if isinstance(metric, keras.metrics.Metric) and metric.name != "compile_metrics"
    ]


def all_sums(tensors: list[tf.Tensor]) -> list[tf.Tensor]:
    """The sum of each tensor over all replicas; tensors of one type are concatenated into a single all-reduce."""
    context = tf.distribute.get_replica_context()
    sums: list[Any] = [None] * len(tensors)
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        indices = [index for index, tensor in enumerate(tensors) if tensor.dtype == dtype]
        flat = tf.concat([tf.reshape(tensors[index], [-1]) for index in indices], axis=0)
        reduced = context.all_reduce(tf.distribute.ReduceOp.SUM, flat)
        parts = tf.split(reduced, [tf.size(tensors[index]) for index in indices])
        for index, part in zip(indices, parts, strict=True):
            sums[index] = tf.ensure_shape(tf.reshape(part, tf.shape(tensors[index])), tensors[index].shape)
    return sums


class ReplicaSeeds:
    """Keras' generator of operations without a seed, for one replica: each replica draws other numbers from the same state.

    Each draw changes the whole state, so states that were offset from each other would not stay so. A resume, which has the state of the
    first replica only, would continue with others.
    """

    def __init__(self, generator: keras.random.SeedGenerator, replica: int) -> None:
        self._generator = generator
        self._replica = replica

    @property
    def state(self) -> keras.Variable:
        """The same for all replicas."""
        return self._generator.state

    def next(self, ordered: bool = True) -> tf.Tensor:
        """The seed of the next operation."""
        drawn = tf.convert_to_tensor(self._generator.next(ordered))
        return tf.cast(_offset(tf.cast(drawn, tf.int64), self._replica), drawn.dtype)


def spread(variables: list[keras.Variable], replica: int) -> None:
    """Copies the variables of the first replica to all; seeds of layers are offset, so that no two draw the same numbers."""
    own = [_summable(variable.value) for variable in variables]
    sums = all_sums([value if replica == 0 else tf.zeros_like(value) for value in own])
    for variable, value in zip(variables, sums, strict=True):
        if variable.name == SEED_STATE:
            value = _offset(value, replica)
        variable.assign(tf.cast(value, variable.dtype))


def copy_first(variable: keras.Variable, replica: int) -> None:
    """Copies a variable of the first replica to all as it is."""
    own = _summable(variable.value)
    (value,) = all_sums([own if replica == 0 else tf.zeros_like(own)])
    variable.assign(tf.cast(value, variable.dtype))


def _offset(seed: tf.Tensor, replica: int) -> tf.Tensor:
    return (
        tf.math.floormod(seed + tf.constant([replica * SEED_STRIDE % 2**32, 0], seed.dtype), 2**32) if replica else seed
    )


def _summable(value: Any) -> tf.Tensor:
    """A tensor of a type that replicas can sum."""
    tensor = tf.convert_to_tensor(value)
    if tensor.dtype in (tf.float32, tf.float64, tf.int64):
        return tensor
    return tf.cast(tensor, tf.float32 if tensor.dtype.is_floating else tf.int64)
