"""Losses and metrics on a graph that lacks some of the outputs they need, as a prediction graph may.

A missing output is replaced by a tensor whose value means nothing: in a graph of TensorFlow by zeros, whose dependents the graph
knows; elsewhere by a symbolic tensor of Keras, and whatever is computed from it is symbolic too.
"""

from collections.abc import Callable, Iterable
from typing import Any

import keras

from scena.model.graph import Tensors

Compute = Callable[[Tensors], Any]
"""Computes named values from the outputs of a graph."""


class MissingOutputs:
    """Outputs of the training graph that the prediction graph does not have.

    Args:
        training_outputs: builds the training graph; called when an output is first missed.
        present: names of the outputs that there are.
    """

    def __init__(self, training_outputs: Callable[[], Tensors], present: list[str]) -> None:
        self._training_outputs = training_outputs
        self._present = present
        self.specs: dict[str, keras.KerasTensor] | None = None
        """The missing outputs by name, without values; None until they are found."""

    def find(self) -> None:
        """Builds the training graph. It may create variables, so this must not happen while another graph is traced."""
        self.specs = {
            name: keras.KerasTensor(value.shape, value.dtype)
            for name, value in self._training_outputs().items()
            if name not in self._present
        }

    def names(self) -> list[str]:
        """The names of the missing outputs."""
        return sorted(self.specs or {})

    def measurable(self, compute: Compute, outputs: Tensors) -> tuple[dict[str, Any], list[str]] | None:
        """The values of `loss` or `metrics` that need no missing output, and the names of the others; None if that cannot be decided."""
        stand_ins, depends = self._stand_ins(outputs)
        try:
            values = compute({**outputs, **stand_ins})
        except Exception:  # code that takes no tensor of this kind fails in its own way
            return None
        known = {name: value for name, value in values.items() if not depends(value)}
        return known, [name for name in values if name not in known]

    def _stand_ins(self, outputs: Tensors) -> tuple[Tensors, Callable[[Any], bool]]:
        """A placeholder for each missing output, and a function that tells whether a value was computed from one."""
        specs = self.specs or {}
        if keras.config.backend() == "tensorflow":
            import tensorflow as tf

            if not tf.executing_eagerly():
                some = next(iter(outputs.values()))
                made = {name: _tf_stand_in(spec, some) for name, spec in specs.items()}
                return made, lambda value: _tf_depends(value, made.values())
        batch = next(iter(outputs.values())).shape[0]
        return {
            name: keras.KerasTensor((batch, *spec.shape[1:]), spec.dtype) for name, spec in specs.items()
        }, _is_symbolic


def _is_symbolic(value: Any) -> bool:
    return any(isinstance(leaf, keras.KerasTensor) for leaf in keras.tree.flatten(value))


def _tf_stand_in(spec: Any, like: Any) -> Any:
    """A tensor of this kind whose value means nothing, for as many samples as `like` has.

    It has a value because TensorFlow runs some operations unasked, such as the checks of shapes in losses.
    """
    import tensorflow as tf

    shape = [tf.shape(like)[0], *(1 if size is None else size for size in spec.shape[1:])]
    made = tf.zeros(shape, keras.backend.standardize_dtype(spec.dtype))
    return tf.ensure_shape(made, spec.shape)


def _tf_depends(value: Any, origins: Iterable[Any]) -> bool:
    """Whether a tensor, or one in a nested value, is computed from any of the origins: a graph of TensorFlow knows that exactly."""
    import tensorflow as tf

    wanted = {origin.op.name for origin in origins}
    waiting = [leaf.op for leaf in keras.tree.flatten(value) if tf.is_symbolic_tensor(leaf)]
    seen: set[str] = set()
    while waiting:
        operation = waiting.pop()
        if operation.name in wanted:
            return True
        if operation.name not in seen:
            seen.add(operation.name)
            waiting += [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
    return False
