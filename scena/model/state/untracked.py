"""Variables that Keras does not find by itself: those of a scenario's model, which is no layer, and of second optimizers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import keras

from scena.errors import ModelError

if TYPE_CHECKING:
    from scena.model.model import ModelBase


def check_nothing_to_train(model: "ModelBase[Any]") -> None:
    """Refuses weights in attributes of a model: an optimizer gets those of the graph only, and so does an export.

    Raises:
        ModelError: there are some.
    """
    for name, value in _attributes(model):
        if isinstance(value, keras.Variable | keras.Layer) and value.trainable and _variables(value):
            raise ModelError(
                f"{type(model).__name__}.{name} has weights that would be neither trained nor exported: a training trains the weights of "
                f"the graph. Create it in __init__ of the graph and return what the losses need as an output, or set "
                f"{name}.trainable = False if it is constant."
            )


def untracked_variables(training_model: Any) -> list[keras.Variable]:
    """What a step changes besides weights, metrics and the optimizer's variables, as far as it is an attribute.

    Raises:
        ModelError: an optimizer has no variables yet, so they could not be restored.
    """
    found: list[keras.Variable] = []
    for name, value in _attributes(training_model):
        if isinstance(value, keras.optimizers.Optimizer) and value is not training_model.optimizer:
            if not value.built:
                raise ModelError(
                    f"{type(training_model).__name__}.{name} is an optimizer without variables, which a resumed training would miss. "
                    f"Call self.{name}.build(…) with its weights in __init__."
                )
            found += value.variables
    for _, value in _attributes(training_model.measures.model):
        if isinstance(value, keras.Variable):
            found.append(value)
        elif isinstance(value, keras.random.SeedGenerator):
            found.append(value.state)
    return found


def _attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    """The attributes, with the elements of lists and dicts."""
    for name, value in vars(owner).items():
        if name.startswith("_self_"):  # TensorFlow's notes about the others
            continue
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        yield from ((name, each) for each in values)


def _variables(value: Any) -> list[Any]:
    return [value] if isinstance(value, keras.Variable) else list(value.trainable_variables)
