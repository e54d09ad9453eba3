"""Building a network: symbolic inputs, half precision, and layers whose tensors outlive the trace in which they were built."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import keras
import numpy as np
from keras import ops

from scena.data.spec import ArraySpec
from scena.errors import ModelError

HALF = ("float16", "bfloat16")


def keras_dtype(spec: ArraySpec) -> str:
    """The name that Keras and TensorFlow have for a spec's type."""
    return "string" if spec.dtype.kind in "US" else spec.dtype.name


def symbolic(specs: dict[str, ArraySpec]) -> dict[str, Any]:
    """Keras inputs for the specs, by name."""
    return {name: keras.Input(shape=spec.shape, dtype=keras_dtype(spec), name=name) for name, spec in specs.items()}


@contextmanager
def precision_policy(name: str) -> Iterator[None]:
    """Layers that are created inside the block use this Keras policy."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def full_precision(outputs: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a graph with those in half precision as float32, so that losses, metrics and users get full numbers."""
    return {
        name: ops.cast(value, "float32") if keras.backend.standardize_dtype(value.dtype) in HALF else value
        for name, value in outputs.items()
    }


@contextmanager
def traceable(root: keras.layers.Layer) -> Iterator[list[keras.layers.Layer]]:
    """While the block runs, a network can be traced although its layers are neither built nor adapted to data; yields those it builds."""
    built: list[keras.layers.Layer] = []
    provisional = [entry for layer in root._flatten_layers() for entry in _provisional(layer)]
    before = [getattr(layer, name, _NOTHING) for layer, name, _ in provisional]
    for layer, name, value in provisional:
        setattr(layer, name, value)
    try:
        with _eager_builds(built):
            yield built
    finally:
        # so that Keras refuses to compute with a layer that was never adapted
        for (layer, name, _), value in zip(provisional, before, strict=True):
            if value is _NOTHING:
                delattr(layer, name)
            else:
                setattr(layer, name, value)


def check_kept(root: keras.layers.Layer, built: list[keras.layers.Layer]) -> None:
    """Raises ModelError for built layers with variables that are no part of the network: new at each call, they would never be trained."""
    kept = {id(layer) for layer in root._flatten_layers()}
    lost = [layer for layer in built if id(layer) not in kept and layer.variables]
    if lost:
        names = ", ".join(f"{type(layer).__name__} {layer.name!r}" for layer in lost[:3])
        raise ModelError(
            f"{names}{' …' if len(lost) > 3 else ''}: the graph uses a layer that it does not keep, so it would not be trained. "
            "Create layers in __init__ and keep them as attributes (self.dense = …); in build_graph only call them."
        )


_NOTHING = object()
_SCOPE = "stateless_scope"
"""Where Keras keeps the `StatelessScope` that is entered."""


def _provisional(layer: Any) -> list[tuple[Any, str, Any]]:
    """Attributes that a layer lacks until it is adapted, with values of the right shape."""
    if isinstance(layer, keras.layers.Discretization) and layer.bin_boundaries is None:
        return [(layer, "bin_boundaries", [0.0] * (layer.num_bins - 1))]
    if not isinstance(layer, keras.layers.StringLookup | keras.layers.IntegerLookup) or int(layer.lookup_table.size()):
        return []
    words = np.array(
        ["?"] if layer.vocabulary_dtype == "string" else [0], object if layer.vocabulary_dtype == "string" else "int64"
    )
    found = [(layer, "lookup_table", layer._lookup_table_from_tokens(words))]
    if layer.output_mode == "tf_idf" and layer.pad_to_max_tokens and not hasattr(layer, "idf_weights_const"):
        found.append((layer, "idf_weights_const", np.zeros(layer.max_tokens, keras.config.floatx())))
    return found


@contextmanager
def _eager_builds(built: list[keras.layers.Layer]) -> Iterator[None]:
    """Inside, layers that are called for the first time are built eagerly, although the call itself is symbolic.

    Keras builds a layer inside a layer while it traces the outer one. A tensor that the inner layer keeps as an attribute
    (`Normalization` keeps its mean) would then belong to that trace and could not be used in any other. Variables would get their values
    only afterwards, and the trace would have their initializers at every use, which takes up to half of the time of building a model.
    A layer of layers without a `build` of its own is not traced an extra time to build them, as its call does that: Keras would trace
    layers inside three layers of this kind four times. The values are the same.
    """
    from keras.src.backend.common import global_state
    from keras.src.layers.layer import get_shapes_dict, might_have_unbuilt_state
    from keras.src.utils.python_utils import is_default

    layer_class: Any = keras.layers.Layer
    original = layer_class._maybe_build  # the one place in which a call leads to a build; there is no public one

    called: dict[int, tuple[Any, Any]] = {}

    def build(layer: Any, call_spec: Any) -> None:
        if layer.built or id(layer) in called:
            return
        built.append(layer)
        if is_default(layer.build) and might_have_unbuilt_state(layer):
            called[id(layer)] = layer, next(iter(get_shapes_dict(call_spec).values()), None)
            return
        scope = global_state.get_global_attribute(_SCOPE)
        global_state.set_global_attribute(_SCOPE, None)
        try:
            with _outside_of_traces():
                original(layer, call_spec)
        finally:
            global_state.set_global_attribute(_SCOPE, scope)

    layer_class._maybe_build = build
    try:
        yield
        for layer, shape in reversed(called.values()):
            layer.build(shape)  # only marks it as built
    finally:
        layer_class._maybe_build = original


def _outside_of_traces() -> AbstractContextManager[Any]:
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        scope: AbstractContextManager[Any] = tf.init_scope()
        return scope
    import jax

    return jax.ensure_compile_time_eval()
