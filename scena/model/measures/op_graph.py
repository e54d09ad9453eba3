"""The operations of a model's losses and metrics as plain data, whichever backend traced them: kinds, shapes, lines of code."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import keras

from scena.user_code import Line, is_users

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
    """A tensor of the trace.

    Attributes:
        shape: its shape.
        kind: of the operation that made it; "given" for inputs, targets and outputs.
        sources: what that operation computed it from.
        name: part and name, of a given tensor.
        line: the user's line that made it.
        operation: what the backend calls the operation.
    """

    shape: tuple[int | None, ...]
    kind: str
    sources: "list[Tensor]" = field(default_factory=list)
    name: tuple[str, str] | None = None
    line: Line | None = None
    operation: str = ""


def trace(function: Callable[[Any, Any, Any], Any], shapes: Shapes) -> list[Tensor]:
    """All tensors that a function of inputs, targets and outputs computes, in order."""
    if keras.backend.backend() == "jax":
        return list(_jax_tensors(function, shapes))
    return list(_tensorflow_tensors(function, shapes))


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
                made = Tensor(
                    shape, kind, sources, line=_line((f.filename, f.lineno, f.name) for f in operation.traceback)
                )
                known[output.ref()] = made
                yield made


def _jax_tensors(function: Callable[[Any, Any, Any], Any], shapes: Shapes) -> Iterator[Tensor]:
    import jax

    given = {
        part: {name: jax.ShapeDtypeStruct(shape, dtype) for name, (shape, dtype) in tensors.items()}
        for part, tensors in shapes.items()
    }
    closed = jax.make_jaxpr(
        lambda parts: jax.tree.leaves(function(parts["inputs"], parts["targets"], parts["outputs"]))
    )(given)
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
