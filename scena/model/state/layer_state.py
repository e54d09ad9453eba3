"""State of layers besides their variables: vocabularies, bin boundaries, quantization, tensors derived from weights.

It is read and set through Keras' hooks of the layers: `save_own_variables`, `load_own_variables`, `save_assets`, `load_assets` and
`finalize_state`. The state is plain data (numbers and files), the same in checkpoints and exports.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import keras
import msgspec
import numpy as np
from safetensors.numpy import load, save

from scena.errors import ModelError

Array = np.ndarray[Any, Any]

DESCRIPTION = "layers"
"""The array that describes the others: JSON as bytes."""
VOCABULARY = "vocabulary.json"
_HOOKS = ("save_own_variables", "load_own_variables", "save_assets", "load_assets", "finalize_state")
_WEIGHTS_ONLY = ("keras.src.layers.core.", "keras.src.layers.convolutional.", "keras_hub.src.layers.")
"""Layers of Keras whose hooks only rearrange variables, for quantization and LoRA."""


class LayerState(msgspec.Struct):
    """The state of one layer."""

    place: int
    """Its index among all layers."""
    path: str
    """The names of the enclosing layers and its own."""
    kind: str
    quantization: str | None = None
    variables: dict[str, int] = {}
    """Variables that `save_own_variables` stored: name -> position in `layer.variables`. Their values are not stored again."""
    values: dict[str, Any] = {}
    """Other arrays that it stored."""
    files: dict[str, Any] = {}
    """Files of `save_assets`, as bytes."""


class Layers:
    """All layers below some roots, in a fixed order, and the state of those that have more than variables."""

    def __init__(self, *roots: keras.layers.Layer) -> None:
        seen: set[int] = set()
        self._all: list[tuple[str, Any]] = [entry for root in roots for entry in _walk(root, "", seen)]

    def stateful(self) -> dict[int, tuple[str, Any]]:
        """The layers with more state than their variables, by number, each with its path."""
        return {place: entry for place, entry in enumerate(self._all) if _has_state(entry[1])}

    def read(self) -> list[LayerState]:
        """The state of all such layers.

        Raises:
            ModelError: a layer stores something that is neither numbers nor files.
        """
        return [_read(place, path, layer) for place, (path, layer) in self.stateful().items()]

    def quantize(self, states: list[LayerState]) -> None:
        """Quantizes layers as they were, which determines their variables. Call it before those are set."""
        for state in states:
            path, layer = self._of(state)
            if state.quantization is None or state.quantization == _quantization(layer):
                continue
            if layer.quantization_mode is not None:
                raise ModelError(
                    f"{path} is not quantized as {state.quantization}, as it was when its state was stored."
                )
            layer.quantize(*_quantize_arguments(path, state.quantization))

    def set(self, states: list[LayerState]) -> None:
        """Sets the state of layers through their hooks. Call it after their variables are set; they keep their values.

        Raises:
            ModelError: the layers differ, or one does not accept its state.
        """
        for state in states:
            set_layer(*self._of(state), state)
        lost = [path for place, (path, layer) in self.stateful().items()
                if place not in {state.place for state in states} and not _needs_only_variables(layer)]  # fmt: skip
        if lost:
            raise ModelError(f"the state of {', '.join(lost)} is not stored there; it was written by an older version of Scena, "
                             "or the model has changed")  # fmt: skip
        self.refresh({state.place for state in states})

    def refresh(self, without: Iterable[int] = ()) -> None:
        """Derives the tensors of layers again from their current variables."""
        for place, (path, layer) in self.stateful().items():
            if place not in without and _derives(layer):
                set_layer(path, layer, _read(place, path, layer))

    def derived_from_trained(self) -> bool:
        """Whether a layer may derive tensors from trained variables."""
        return any(_derives(layer) and layer.trainable_variables for _, layer in self.stateful().values())

    def refresh_trained(self) -> bool:
        """Derives the tensors of such layers again; returns whether one of them replaced a tensor."""
        changed = False
        for place, (path, layer) in self.stateful().items():
            if _derives(layer) and layer.trainable_variables:
                before = _tensors(layer)
                set_layer(path, layer, _read(place, path, layer))
                changed = changed or _tensors(layer) != before
        return changed

    def constants(self) -> "Constants":
        """What the layers keep outside of variables now: a compiled function has it as constants."""
        return Constants([layer for _, layer in self._all])

    def quantized(self) -> list[LayerState]:
        """The quantization of the quantized layers."""
        found = ((place, path, layer, _quantization(layer)) for place, (path, layer) in self.stateful().items())
        return [LayerState(place, path, type(layer).__name__, name) for place, path, layer, name in found if name]

    def pack(self) -> bytes:
        """The state of all such layers with their variables, for the layers of another process."""
        arrays = encode(self.read())
        for place, (_, layer) in self.stateful().items():
            for number, variable in enumerate(layer.variables):
                arrays[f"{place}/variable/{number}"] = keras.ops.convert_to_numpy(variable.value)
        return save(arrays) if arrays else b""

    def unpack(self, content: bytes) -> None:
        """Sets the result of `pack`."""
        arrays = load(content) if content else {}
        for place, (_, layer) in self.stateful().items():
            for number, variable in enumerate(layer.variables):
                variable.assign(arrays[f"{place}/variable/{number}"])
        self.set(decode(arrays))

    def _of(self, state: LayerState) -> tuple[str, Any]:
        path, layer = self._all[state.place] if 0 <= state.place < len(self._all) else ("", None)
        if type(layer).__name__ != state.kind:
            raise ModelError(
                f"the state of {state.path} ({state.kind}) is stored, and the model has no such layer: its parameters or its code "
                "have changed"
            )
        return path, layer


DECIDED_LATE = "_jit_compile"
"""How Keras compiles a model, not what it computes; Keras sets it when somebody first asks, as writing `model.keras` does."""


class Constants:
    """The attributes of layers at one time."""

    def __init__(self, layers: list[Any]) -> None:
        self._layers = layers
        self._values = self._read()

    def unchanged(self) -> bool:
        """Whether the layers still have them."""
        now = self._read()
        return len(now) == len(self._values) and all(map(_same, self._values, now))

    def _read(self) -> list[Any]:
        kept = (value for layer in self._layers for name, value in vars(layer).items() if name != DECIDED_LATE)
        return [_copied(value) for value in kept]


def _copied(value: Any, depth: int = 4) -> Any:
    """The value; a copy of what can be changed in place."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    if isinstance(value, list | dict) and depth:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [_copied(part, depth - 1) for item in items for part in item]
    return value


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, np.ndarray) and isinstance(other, np.ndarray):
        return value.dtype == other.dtype and np.array_equal(value, other)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_same, value, other))
    plain = isinstance(value, int | float | str | bytes) and type(value) is type(other)
    return value is other or (plain and bool(value == other))


def set_layer(path: str, layer: Any, state: LayerState) -> None:
    """Sets the state of one layer; its variables keep their values."""
    before = [keras.ops.convert_to_numpy(variable.value) for variable in layer.variables]
    try:
        _set(layer, state)
    except Exception as error:  # the hook may be a user's
        raise ModelError(f"the layer {path} ({state.kind}) does not accept its stored state: {error}") from error
    for variable, value in zip(layer.variables, before, strict=True):
        variable.assign(value)  # a hook may change them, as those of LoRA do


# ---- as named arrays, for a safetensors file ------------------------------------------------------------------------


def encode(states: list[LayerState], prefix: str = "") -> dict[str, Array]:
    """The states as arrays; none if there are no states."""
    if not states:
        return {}
    arrays: dict[str, Array] = {}
    described = []
    for position, state in enumerate(states):
        arrays |= {f"{prefix}{position}/value/{name}": value for name, value in state.values.items()}
        arrays |= {f"{prefix}{position}/file/{name}": _bytes(content) for name, content in state.files.items()}
        plain = msgspec.structs.replace(state, values=dict.fromkeys(state.values), files=dict.fromkeys(state.files))
        described.append(msgspec.to_builtins(plain))
    return {f"{prefix}{DESCRIPTION}": _bytes(json.dumps(described).encode()), **arrays}


def decode(arrays: Mapping[str, Array], prefix: str = "") -> list[LayerState]:
    """The states from arrays; none if the arrays hold none.

    Raises:
        ModelError: the arrays are not what `encode` made.
    """
    if f"{prefix}{DESCRIPTION}" not in arrays:
        return []
    try:
        states = msgspec.json.decode(_content(arrays[f"{prefix}{DESCRIPTION}"]), type=list[LayerState])
        for position, state in enumerate(states):
            for name in state.values:
                state.values[name] = arrays[f"{prefix}{position}/value/{name}"]
            for name in state.files:
                state.files[_inside(name)] = _content(arrays[f"{prefix}{position}/file/{name}"])
    except (msgspec.MsgspecError, KeyError, ValueError, RecursionError) as error:
        raise ModelError(f"the state of its layers is damaged ({error})") from error
    return states


# ---- one layer --------------------------------------------------------------------------------------------------------


def _walk(layer: Any, prefix: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(layer) in seen:
        return
    seen.add(id(layer))
    path = f"{prefix}{layer.name}"
    yield path, layer
    for child in layer._layers:
        yield from _walk(child, f"{path}/", seen)


def _has_state(layer: Any) -> bool:
    if isinstance(layer, keras.layers.TextVectorization):
        return False  # its StringLookup holds the state
    if isinstance(layer, keras.layers.Discretization) or _quantization(layer) is not None:
        return True
    return any(_overridden(layer, hook) for hook in _HOOKS)


def _overridden(layer: Any, hook: str) -> bool:
    method = getattr(type(layer), hook, None)
    if method is None or method is getattr(keras.layers.Layer, hook, None):
        return False
    module = str(getattr(method, "__module__", ""))
    return not module.startswith(_WEIGHTS_ONLY)


def _derives(layer: Any) -> bool:
    """Whether a layer may have tensors that it derives from its variables."""
    if _is_lookup(layer) or isinstance(layer, keras.layers.Discretization):
        return False
    return any(_overridden(layer, hook) for hook in ("load_own_variables", "finalize_state"))


def _tensors(layer: Any) -> dict[str, int]:
    """Which tensors a layer holds as attributes."""
    return {name: id(value) for name, value in vars(layer).items() if keras.ops.is_tensor(value)}


def _quantization(layer: Any) -> str | None:
    """The name of the layer's policy if it is quantized, for example `int8_from_float32`."""
    if isinstance(layer, keras.Model) or getattr(layer, "quantization_mode", None) is None or layer._layers:
        return None
    return str(layer.dtype_policy.name) if getattr(layer, "_is_quantized", False) else None


def _quantize_arguments(path: str, policy: str) -> tuple[Any, ...]:
    mode, _, size = policy.partition("_from_")[0].partition("/")
    if mode in ("int8", "float8") and not size:
        return (mode,)
    if mode == "int4" and size.lstrip("-").isdecimal():
        return (mode, keras.quantizers.Int4QuantizationConfig(block_size=int(size)))
    raise ModelError(f"{path} was quantized as {policy}. Only int8, int4 and float8 can be restored.")


def _is_lookup(layer: Any) -> bool:
    return isinstance(layer, keras.layers.StringLookup | keras.layers.IntegerLookup)


def _read(place: int, path: str, layer: Any) -> LayerState:
    state = LayerState(place, path, type(layer).__name__, _quantization(layer))
    if _is_lookup(layer):
        # not save_assets: its text file splits a token that holds a line separator
        if int(layer.lookup_table.size()):
            words = [word if isinstance(word, str) else int(word) for word in layer.get_vocabulary()]
            state.files[VOCABULARY] = json.dumps(words).encode()
    elif isinstance(layer, keras.layers.Discretization):
        state.values = {
            name: np.asarray(value)
            for name, value in (("bin_boundaries", layer.bin_boundaries), ("summary", layer.summary))
            if value is not None
        }
        return state
    elif hasattr(layer, "save_assets"):
        with tempfile.TemporaryDirectory(prefix="scena-layer-") as folder:
            layer.save_assets(folder)
            for file in sorted(Path(folder).rglob("*")):
                if file.is_file():
                    state.files[file.relative_to(folder).as_posix()] = file.read_bytes()
    if _overridden(layer, "save_own_variables") or _overridden(layer, "load_own_variables"):
        store: dict[str, Any] = {}
        layer.save_own_variables(store)
        positions = {id(variable): position for position, variable in enumerate(layer.variables)}
        for name, value in store.items():
            if id(value) in positions:
                state.variables[name] = positions[id(value)]
            else:
                state.values[name] = _array(path, name, value)
    return state


def _array(path: str, name: str, value: Any) -> Array:
    array = np.array(keras.ops.convert_to_numpy(value) if keras.ops.is_tensor(value) else value)
    if array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16":
        raise ModelError(
            f"{path}: save_own_variables stores {name!r} of the type {array.dtype}, and only numbers can be kept. "
            "Write it to a file in save_assets, and read it in load_assets."
        )
    return array


def _set(layer: Any, state: LayerState) -> None:
    if isinstance(layer, keras.layers.Discretization):
        layer.summary = state.values.get("summary")
        bounds = state.values.get("bin_boundaries")
        layer.bin_boundaries = None if bounds is None else bounds.tolist()
        return
    if _is_lookup(layer):
        if VOCABULARY in state.files:
            words = json.loads(state.files[VOCABULARY])
            # the weights of TF-IDF are padded, and would be padded once more
            layer.set_vocabulary(words, *(value[: len(words)] for value in state.values.values()))
        return
    if _overridden(layer, "load_own_variables"):
        variables = layer.variables
        stored = {name: keras.ops.convert_to_numpy(variables[place].value) for name, place in state.variables.items()}
        layer.load_own_variables({**stored, **state.values})
    elif _overridden(layer, "finalize_state"):
        layer.finalize_state()
    if state.files or hasattr(layer, "load_assets"):
        with tempfile.TemporaryDirectory(prefix="scena-layer-") as folder:
            for name, content in state.files.items():
                target = Path(folder) / _inside(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            layer.load_assets(folder)


def _needs_only_variables(layer: Any) -> bool:
    """Whether the state of a layer follows from its variables."""
    state = _read(0, "", layer)
    return not (_is_lookup(layer) or state.values or state.files)


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not path.parts:
        raise ValueError(f"the file {name!r} points outside its directory")
    return name


def _bytes(content: bytes) -> Array:
    return np.frombuffer(content, np.uint8)


def _content(array: Array) -> bytes:
    if array.dtype != np.uint8:
        raise ValueError(f"bytes are stored as {array.dtype}")
    return array.tobytes()
