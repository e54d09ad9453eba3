"""Checks on the traced operations of losses and metrics: accidental pairs of samples, and the number of classes of a target.

A target of shape (batch,) minus an output of shape (batch, 1) has the shape (batch, batch): its mean is a number, and training by it
works badly without an error. Such a step is found in the trace of a loss: the batch axis of one tensor meets an axis of size 1 that
another one brought along. Code that asks for all pairs (a new axis, keepdims, a matrix product) is left alone. A trace is plain data,
whichever backend made it: kinds of operations, shapes, lines of code.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import keras

from scena.data.sample import Arrays
from scena.errors import ModelError
from scena.model.building import full_precision
from scena.model.graph import RootGraph
from scena.model.training_model import Measures
from scena.overriding import spelled
from scena.user_code import Line, is_users, reason, user_line

logger = logging.getLogger(__name__)

BATCH = 10007
"""A batch size that no other axis has."""
Shapes = dict[str, dict[str, tuple[tuple[int, ...], str]]]
"""Shape and type of each tensor, by part (inputs, targets, outputs) and name."""

# what TensorFlow and JAX call the same thing
_KINDS = {
    "ExpandDims": "new axis", "Reshape": "reshape", "reshape": "reshape", "Squeeze": "squeeze", "squeeze": "squeeze",
    "slice": "slice", "StridedSlice": "slice", "Mean": "reduce", "Sum": "reduce", "Max": "reduce", "Min": "reduce",
    "Prod": "reduce", "reduce_sum": "reduce", "reduce_max": "reduce", "reduce_min": "reduce", "Cast": "same",
    "Identity": "same", "copy": "same", "convert_element_type": "same", "stop_gradient": "same", "StopGradient": "same",
}  # fmt: skip
_ELEMENTWISE = {
    "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "FloorDiv", "FloorMod", "Pow", "SquaredDifference", "Maximum",
    "Minimum", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "Atan2", "Xdivy",
    "Xlogy", "Xlog1py", "SelectV2", "add", "sub", "mul", "div", "rem", "pow", "max", "min", "eq", "ne", "lt", "le", "gt", "ge",
    "and", "or", "xor", "atan2", "select_n",
}  # fmt: skip


@dataclass(eq=False)
class Tensor:
    """A tensor of the trace."""

    shape: tuple[int | None, ...]
    kind: str
    """Of the operation that computed it; "given" for inputs, targets and outputs."""
    sources: "list[Tensor]" = field(default_factory=list)
    """The operands of that operation."""
    name: tuple[str, str] | None = None
    """Part and name of a given tensor."""
    line: Line | None = None
    """The user's line that computed it."""
    operation: str = ""
    """The backend's name of the operation."""


def check_broadcasts(measures: Measures, root: RootGraph, inputs: Arrays, targets: Arrays) -> dict[str, int]:
    """Traces losses and metrics, and looks for accidental pairs; only the shapes of inputs and targets matter.

    Returns:
        What `label_counts` finds in the losses.

    Raises:
        ModelError: names both tensors with their shapes, the line, and the fix.
    """
    try:
        shapes = shapes_for(root, inputs, targets, BATCH)
    except Exception as error:  # a graph that is made for one batch size
        logger.debug("Losses and metrics are not checked for accidental pairs: %s", error)
        return {}
    counts: dict[str, int] = {}
    for method in ("loss", "metrics"):

        def run(inputs: Any, targets: Any, outputs: Any) -> Any:
            return measures.traced(method, inputs, targets, outputs)  # noqa: B023

        try:
            tensors = trace(run, shapes)
        except Exception as error:
            size = len(next(iter(inputs.values())))
            if _works(run, shapes_for(root, inputs, targets, size)):
                raise ModelError(_of_one_size(spelled(type(measures.model), method), size, error)) from error
            logger.debug("%s is not checked for accidental pairs: %s", method, error)  # the real step will explain it
            continue
        for tensor in tensors:
            pair = accidental_pair(tensor)
            if pair is not None:
                raise ModelError(_explanation(spelled(type(measures.model), method), tensor, *pair))
        counts |= _counts(tensors) if method == "loss" else {}
    return counts


def _works(function: Callable[[Any, Any, Any], Any], shapes: Shapes) -> bool:
    try:
        trace(function, shapes)
    except Exception:
        return False
    return True


def _of_one_size(method: str, size: int, error: Exception) -> str:
    line = user_line(error)
    place = f" at {line}" if line is not None else ""
    return (
        f"{method} works for batches of exactly {size} samples only{place}, so it takes another axis of this size for that of the samples: "
        f"with another batch size, {reason(error).rstrip('.')}. Compare a target and an output of the same shape. "
        "(--trainer.sanity_check False skips this check.)"
    )


def shapes_for(root: RootGraph, inputs: Arrays, targets: Arrays, size: int) -> Shapes:
    """Shapes and types of all tensors, for a batch of this many samples like these."""
    shapes = _array_shapes(size, inputs=inputs, targets=targets)
    symbolic = {
        part: {name: keras.KerasTensor(shape, dtype, name=name) for name, (shape, dtype) in tensors.items()}
        for part, tensors in shapes.items()
    }
    outputs = full_precision(root(symbolic["inputs"], targets=symbolic["targets"], training=True))
    shapes["outputs"] = {name: (tuple(value.shape), value.dtype) for name, value in outputs.items()}
    return shapes


def _array_shapes(size: int, **parts: Arrays) -> Shapes:
    return {
        part: {
            name: ((size, *array.shape[1:]), "string" if array.dtype.kind in "USO" else str(array.dtype))
            for name, array in arrays.items()
        }
        for part, arrays in parts.items()
    }


def accidental_pair(tensor: Tensor) -> tuple[Tensor, Tensor] | None:
    """The tensors whose samples an operation pairs: the one without the axis of size 1, and the one with it; None if it pairs none."""
    if tensor.kind != "elementwise":
        return None
    operands = [_before_promotion(source) for source in tensor.sources]
    for low in operands:
        for high in operands:
            if len(low.shape) >= len(high.shape) or BATCH not in low.shape:
                continue
            axis = len(high.shape) - len(low.shape) + low.shape.index(BATCH)
            if high.shape[axis] != 1 or high.shape[0] != BATCH or axis == 0:
                continue
            brought = _origin(high)
            others = _given(low)
            if brought is not None and others and others != {brought}:
                return low, high
    return None


def _before_promotion(tensor: Tensor) -> Tensor:
    """The operand itself: JAX makes the promotion of an operand to more or larger axes an operation of its own."""
    while tensor.kind == "promote" and tensor.sources:
        tensor = tensor.sources[0]
    return tensor


def _origin(tensor: Tensor, seen: set[Tensor] | None = None) -> Tensor | None:
    """The given tensor that the axes of size 1 come from; None if code created them on purpose."""
    seen = set() if seen is None else seen
    if tensor.kind == "given":
        return tensor
    if tensor in seen:
        return None
    seen.add(tensor)
    if tensor.kind in ("squeeze", "slice", "reduce") and tensor.sources:
        source = tensor.sources[0]
        if source.shape[-1:] == (1,):
            return _origin(source, seen)
        return next(iter(_given(source)), None) if tensor.kind == "slice" else None
    if tensor.kind in ("new axis", "reshape", "promote"):
        return None
    same = [_origin(source, seen) for source in tensor.sources if source.shape == tensor.shape]
    return next((origin for origin in same if origin is not None), None)


def _given(tensor: Tensor) -> set[Tensor]:
    """The given tensors that one was computed from."""
    found: set[Tensor] = set()
    seen: set[int] = set()
    waiting = [tensor]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.kind == "given":
            found.add(one)
        waiting += one.sources
    return found


def _explanation(method: str, tensor: Tensor, low: Tensor, high: Tensor) -> str:
    place = f" at {tensor.line}" if tensor.line is not None else ""
    origin = _origin(high)
    assert origin is not None
    by_rank = sorted(_given(low) - {origin}, key=lambda given: given.shape != low.shape)
    first, second = _named(by_rank[0], low), _named(origin, high)
    return (
        f"{method} pairs each sample with every other one{place}: {first} meets {second}, and the result has "
        f"batch × batch values. Give both the same shape, for example with ops.squeeze(…, -1) or ops.expand_dims(…, -1). "
        f"If you mean all pairs, use ops.expand_dims on both; --trainer.sanity_check False skips this check."
    )


def _named(given: Tensor, used: Tensor) -> str:
    part, name = given.name or ("", "")
    derived = "" if given.shape == used.shape else "a tensor computed from "
    return f"{derived}{part.removesuffix('s')} {name!r} of shape {_text(used.shape)}"


def _text(shape: tuple[int | None, ...]) -> str:
    axes = ["batch" if axis == BATCH else "?" if axis is None else str(axis) for axis in shape]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"


def label_counts(measures: Measures, root: RootGraph, inputs: Arrays, targets: Arrays) -> dict[str, int]:
    """The number of classes of each target that a loss turns into one-hot vectors; of the arrays only shapes matter.

    A label that is out of range gives a vector of zeros, and the sample has no loss. (TensorFlow itself refuses one in a sparse
    cross-entropy, which JAX computes with one-hot vectors, too.)
    """
    return _label_counts(measures, lambda: shapes_for(root, inputs, targets, BATCH))


def label_counts_with(measures: Measures, inputs: Arrays, targets: Arrays, outputs: Arrays) -> dict[str, int]:
    """The same for given outputs."""
    return _label_counts(measures, lambda: _array_shapes(BATCH, inputs=inputs, targets=targets, outputs=outputs))


def _label_counts(measures: Measures, create_shapes: Callable[[], Shapes]) -> dict[str, int]:
    try:
        shapes = create_shapes()
        tensors = trace(lambda inputs, targets, outputs: measures.traced("loss", inputs, targets, outputs), shapes)
    except Exception as error:  # a loss that is made for one batch size
        logger.debug("The numbers of classes are not known: %s", error)
        return {}
    return _counts(tensors)


def _counts(tensors: list[Tensor]) -> dict[str, int]:
    found: dict[str, int] = {}
    for tensor in tensors:
        labels, count = _one_hot(tensor)
        given = None if labels is None else _unchanged(labels)
        if given is not None and given.name is not None and given.name[0] == "targets":
            found[given.name[1]] = count
    return found


def _one_hot(tensor: Tensor) -> tuple[Tensor | None, int]:
    """The labels that a tensor has the one-hot vectors of, and the number of classes; JAX compares labels with all classes."""
    if tensor.operation == "OneHot" and tensor.sources:
        return tensor.sources[0], tensor.shape[-1] or 0
    classes = next((source for source in tensor.sources if source.kind == "iota"), None)
    if tensor.operation != "eq" or classes is None:
        return None, 0
    return next((source for source in tensor.sources if source.kind != "iota"), None), max(
        size or 0 for size in classes.shape
    )


def _unchanged(tensor: Tensor) -> Tensor | None:
    """The given tensor whose values this one has, in another shape or type."""
    while tensor.kind in ("new axis", "promote", "same", "squeeze", "reshape") and len(tensor.sources) == 1:
        tensor = tensor.sources[0]
    return tensor if tensor.kind == "given" else None


# ---- tracing ----------------------------------------------------------------------------------------------------------


def trace(function: Callable[[Any, Any, Any], Any], shapes: Shapes) -> list[Tensor]:
    """All tensors that a function of inputs, targets and outputs computes, in order."""
    return list((_jax_tensors if keras.backend.backend() == "jax" else _tensorflow_tensors)(function, shapes))


def _tensorflow_tensors(function: Callable[[Any, Any, Any], Any], shapes: Shapes) -> Iterator[Tensor]:
    import tensorflow as tf

    graph = tf.__internal__.FuncGraph("trace")
    known: dict[Any, Tensor] = {}
    eagerly = tf.config.functions_run_eagerly()
    with graph.as_default():
        given = {
            part: {name: tf.compat.v1.placeholder(dtype, shape) for name, (shape, dtype) in tensors.items()}
            for part, tensors in shapes.items()
        }
        for part, tensors in given.items():
            for name, tensor in tensors.items():
                known[tensor.ref()] = Tensor(shapes[part][name][0], "given", name=(part, name))
        tf.config.run_functions_eagerly(True)  # a function inside becomes part of this graph
        try:
            function(given["inputs"], given["targets"], given["outputs"])
        finally:
            tf.config.run_functions_eagerly(eagerly)
    yield from known.values()
    for operation in graph.get_operations():
        sources = [known[tensor.ref()] for tensor in operation.inputs if tensor.ref() in known]
        kind = _KINDS.get(operation.type, "elementwise" if operation.type in _ELEMENTWISE else operation.type)
        if operation.type == "StridedSlice" and operation.get_attr("new_axis_mask"):
            kind = "new axis"
        if kind == "reduce" and operation.get_attr("keep_dims"):
            kind = "new axis"
        for output in operation.outputs:
            if output.ref() not in known:
                shape = tuple(output.shape) if output.shape.rank is not None else ()
                line = _line((f.filename, f.lineno, f.name) for f in operation.traceback)
                last = operation.type != "OneHot" or operation.get_attr("axis") == -1
                made = Tensor(shape, kind, sources, line=line, operation=operation.type if last else "")
                known[output.ref()] = made
                yield made


def _jax_tensors(function: Callable[[Any, Any, Any], Any], shapes: Shapes) -> Iterator[Tensor]:
    import jax

    given = {
        part: {name: jax.ShapeDtypeStruct(shape, dtype) for name, (shape, dtype) in tensors.items()}
        for part, tensors in shapes.items()
    }

    def leaves(parts: dict[str, Any]) -> list[Any]:
        with keras.StatelessScope():  # a seed generator of the loss must not keep a tracer
            return jax.tree.leaves(function(parts["inputs"], parts["targets"], parts["outputs"]))

    closed = jax.make_jaxpr(leaves)(given)
    order = [(part, name) for part in sorted(given) for name in sorted(given[part])]
    known = {
        variable: Tensor(tuple(variable.aval.shape), "given", name=name)
        for variable, name in zip(closed.jaxpr.invars, order, strict=True)
    }
    yield from known.values()
    yield from _equations(closed.jaxpr, known)


def _equations(jaxpr: Any, known: dict[Any, Tensor]) -> Iterator[Tensor]:
    """The tensors of a program, with those of the programs that it calls."""
    for equation in jaxpr.eqns:
        sources = [known[variable] for variable in equation.invars if _hashable(variable) and variable in known]
        name = equation.primitive.name
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        inner = getattr(inner, "jaxpr", inner)
        if inner is not None and len(inner.invars) == len(equation.invars):
            arguments = {
                inside: known[outside]
                for inside, outside in zip(inner.invars, equation.invars, strict=True)
                if _hashable(outside) and outside in known
            }
            yield from _equations(inner, arguments)
            known |= {
                outside: arguments[inside]
                for inside, outside in zip(inner.outvars, equation.outvars, strict=True)
                if _hashable(inside) and inside in arguments
            }
            continue
        kind = _KINDS.get(name, "elementwise" if name in _ELEMENTWISE else name)
        if name == "broadcast_in_dim":
            rank, axes = len(equation.params["shape"]), tuple(equation.params["broadcast_dimensions"])
            aligned = bool(axes) and axes == tuple(range(rank - len(axes), rank))
            kind = "promote" if aligned else "new axis"
        frames = equation.source_info.traceback.frames if equation.source_info.traceback else []
        line = _line((frame.file_name, frame.line_num, frame.function_name) for frame in reversed(frames))
        for variable in equation.outvars:
            known[variable] = Tensor(tuple(variable.aval.shape), kind, sources, line=line, operation=name)
            yield known[variable]


def _hashable(variable: Any) -> bool:
    return type(variable).__hash__ is not None and not hasattr(variable, "val")  # a literal has a value


def _line(frames: Any) -> Line | None:
    """The innermost line of the user among frames that run from the outermost to the innermost."""
    lines = [Line(file, number, name) for file, number, name in frames if is_users(file)]
    return lines[-1] if lines else None
