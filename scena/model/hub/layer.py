"""A SavedModel as a layer, and a classifier on its features."""

from pathlib import Path
from typing import Any

import keras

from scena.errors import ModelError
from scena.model.hub.inspect import check_saved_model
from scena.storage.checksums import DamagedFileError, verify_tree


class SavedModelFeatures(keras.layers.Layer):
    """Runs a SavedModel; its variables are weights of this layer, so they can be trained, frozen and stored.

    It is called as an object (as TensorFlow Hub's are), else by its endpoint `serve` (of Keras), else by its signature
    `serving_default`.

    Raises:
        ModelError: it cannot be loaded, is refused (see `inspect.py`), or does not take such images.
    """

    def __init__(self, path: Path, input_shape: tuple[int | None, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if keras.config.backend() != "tensorflow":
            raise ModelError("A SavedModel needs the TensorFlow backend (KERAS_BACKEND=tensorflow).")
        import tensorflow as tf

        check_saved_model(path)
        try:
            verify_tree(path.parent, path.name)
        except DamagedFileError as error:
            raise ModelError(f"{error}.") from error
        self._folder = path
        try:
            loaded = tf.saved_model.load(str(path))
        except Exception as error:  # what TensorFlow raises for a damaged folder has many types
            raise ModelError(f"The SavedModel {path} cannot be loaded: {error}") from error
        self._held = _Held(loaded)
        self._function, self._by_name = _endpoint(path, loaded)
        self._takes_training = self._fits(input_shape)
        self.build()  # now: once a model is being put together, Keras allows no variables that come from elsewhere

    def call(self, image: Any, training: bool | None = None) -> Any:
        """The features of a batch of images; a layer that is frozen computes as in prediction."""
        if self._by_name is not None:
            outputs = self._function(**{self._by_name: image})
        elif self._takes_training:
            outputs = self._function(image, training=bool(training) and self.trainable)
        else:
            outputs = self._function(image)
        return _features(self._folder, outputs)

    def _fits(self, shape: tuple[int | None, ...]) -> bool:
        """Whether the function takes `training`; raises if it does not take such images."""
        import tensorflow as tf

        image = tf.TensorSpec((None, *shape), tf.float32)
        if self._by_name is not None:
            wanted = self._function.structured_input_signature[1][self._by_name]
            if not (wanted.shape.is_compatible_with(image.shape) and wanted.dtype == image.dtype):
                raise self._misfit(shape, wanted.shape)
            return False
        for training in ({"training": False}, {}):
            try:
                self._function.get_concrete_function(image, **training)
            except (ValueError, TypeError):
                continue
            return bool(training)
        shapes = [function.structured_input_signature[0] for function in self._function.concrete_functions]
        raise self._misfit(shape, shapes)

    def _misfit(self, shape: Any, wanted: Any) -> ModelError:
        return ModelError(
            f"The SavedModel {self._folder} does not take images of shape {shape} (height, width, channels; None: any). "
            f"It takes {wanted}. Give that as --model.input_size."
        )

    def build(self, input_shape: Any = None) -> None:
        """Makes the variables that its function uses weights of this layer."""
        offered = getattr(self._held.loaded, "trainable_variables", None)
        used: dict[int, Any] = {}
        for function in getattr(self._function, "concrete_functions", [self._function]):
            used |= {id(variable): variable for variable in function.variables}
        learned = {id(variable) for variable in offered} if offered is not None else None
        for variable in used.values():  # in the order of the file
            trainable = variable.trainable if learned is None else id(variable) in learned
            self._track_variable(
                keras.Variable(
                    variable,
                    trainable=trainable and variable.dtype.is_floating,
                    dtype=variable.dtype.name,
                    name=variable.name.split(":")[0].replace("/", "_"),
                )
            )


class _Held:
    """Keeps a loaded SavedModel alive and hides it from Keras' tracking."""

    def __init__(self, loaded: Any) -> None:
        self.loaded = loaded


class FeatureClassifier(keras.layers.Layer):
    """A SavedModel's features, pooled if they are a map, and a dense layer on them.

    Args:
        path: the folder of the SavedModel.
        input_shape: the shape of one image.
        num_classes: how many classes; 0 for the features themselves.
        dropout: rate of dropout between the two.
        l2: weight of an L2 penalty on the dense layer's kernel.
    """

    def __init__(
        self,
        path: Path,
        input_shape: tuple[int | None, ...],
        num_classes: int,
        dropout: float = 0.0,
        l2: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with keras.name_scope(self.name):  # its path, to freeze it by: hub/extractor
            self.extractor = SavedModelFeatures(path, input_shape, name="extractor")
        self.dropout = keras.layers.Dropout(dropout, name="dropout")
        penalty = keras.regularizers.L2(l2) if l2 else None
        self.classifier = (
            keras.layers.Dense(num_classes, kernel_regularizer=penalty, dtype="float32", name="classifier")
            if num_classes
            else None
        )

    def call(self, image: Any, training: bool | None = None) -> Any:
        features = self.extractor(image, training=training)
        if len(features.shape) > 2:
            features = keras.ops.mean(features, axis=tuple(range(1, len(features.shape) - 1)))
        if self.classifier is None:
            return features
        return self.classifier(self.dropout(features, training=training))


def _endpoint(path: Path, loaded: Any) -> tuple[Any, str | None]:
    """The function to call, and the name of its input if it needs one."""
    if callable(loaded):
        return loaded.__call__, None
    if hasattr(getattr(loaded, "serve", None), "concrete_functions"):
        return loaded.serve, None
    function = loaded.signatures.get("serving_default")
    if function is None:
        raise ModelError(
            f"The SavedModel {path} is not callable and has neither an endpoint 'serve' nor a signature 'serving_default'. "
            f"It has: {', '.join(loaded.signatures) or 'no signature'}."
        )
    names = list(function.structured_input_signature[1])
    if len(names) != 1:
        raise ModelError(f"The signature of the SavedModel {path} takes {names}; a feature extractor takes an image.")
    return function, names[0]


def _features(path: Path, outputs: Any) -> Any:
    if isinstance(outputs, dict):
        name = "default" if "default" in outputs else next(iter(outputs)) if len(outputs) == 1 else None
        if name is None:
            raise ModelError(f"The SavedModel {path} returns {sorted(outputs)}; a feature extractor has one output.")
        outputs = outputs[name]
    if not 2 <= len(outputs.shape) <= 4 or outputs.shape[-1] is None:
        raise ModelError(f"The SavedModel {path} returns a tensor of shape {outputs.shape}, which is not features.")
    return outputs
