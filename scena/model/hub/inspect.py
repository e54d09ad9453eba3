"""Finds and inspects a SavedModel before it is loaded: a graph can read and write files and call Python.

Loading a SavedModel runs the functions that set up its resources, and using it runs the function that is called. So all
functions are inspected that one of its objects offers or that its graph calls, with everything that they call. Only those that
save and restore its variables are skipped: they never run, since TensorFlow reads the variables itself.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scena.errors import ModelError

MOST_BYTES = 2 << 30
"""A larger graph cannot be read by protobuf anyway."""
REACHES_OUT = re.compile(
    r"File|Filename|Reader|Dataset|Iterator|Save|Restore|Checkpoint|PyFunc|Summary|Print|Debug|Dump|Rpc|RemoteCall|Sql|LMDB|"
    r"Send|Recv|Generator|Import|Export|Archive|Http|Socket|TextLine|CSV|Proto|Logging|Snapshot|Xla.*Launch|TPU|TRT"
)
"""Parts of the names of operations that work with files, with other processes or with Python."""
HARMLESS_STATE = re.compile(
    r"(VarHandleOp|VarIsInitializedOp|ReadVariableOp|ReadVariableXOp|Assign\w*VariableOp|DestroyResourceOp|VariableShape|"
    r"Resource(Gather|Scatter|Strided)\w*|Variable|VariableV2|TemporaryVariable|IsVariableInitialized|Assign|AssignAdd|AssignSub|"
    r"\w*PartitionedCall|If|While|Case|StatelessIf|StatelessWhile|StatelessCase|SymbolicGradient|"
    r"Random\w+|Stateful\w*Random\w*|StatefulUniform\w*|StatefulStandardNormal\w*|StatefulTruncatedNormal|Multinomial|"
    r"ParameterizedTruncatedNormal|TruncatedNormal|RngSkip|RngReadAndSkip|"
    r"(Mutable)?(Dense)?HashTable\w*|Lookup\w+V2|InitializeTableV2|Placeholder\w*|Assert|NoOp|Const|"
    r"TensorList\w*|TensorArray\w*|Stack\w*|AnonymousHashTable|AnonymousMutable\w*|Bucketize|FusedBatchNorm\w*|"
    r"NonDeterministicInts|CollectiveReduce\w*|XlaCallModule)"
)
"""Operations with a state that stays inside the graph. Any other one with a state is refused: unknown is not harmless."""


_trusted = False
"""Whether the user trusts foreign SavedModels (`--trust`). Never stored, never read from a file."""


def trust_saved_models(trust: bool = True) -> None:
    """Allows SavedModels with operations on files or in Python in this process."""
    global _trusted
    _trusted = trust


def check_saved_model(path: Path) -> None:
    """Refuses the SavedModel in a folder if its graph works with files or runs Python, unless the user trusts it.

    Raises:
        ModelError: it is not a SavedModel, or it is refused.
    """
    found = sorted({operation for operation, _ in suspicious_operations(path)})
    if found and not _trusted:
        raise ModelError(
            f"The SavedModel {path} may work with files, with other processes or with Python: its graph has {', '.join(found)}. "
            "Its author could do on this machine what you can. It is loaded only with --trust."
        )


def suspicious_operations(path: Path) -> Iterator[tuple[str, str]]:
    """The operations that reach out of the graph, each with the function that it is in ("" for the graph itself)."""
    model = _read(path)
    # the format of TensorFlow 1: there the graph itself is run, and restores the variables with its own operations
    old = len(model.meta_graphs) > 1 or not model.meta_graphs[0].HasField("object_graph_def")
    for part in model.meta_graphs:
        library = {function.signature.name: function for function in part.graph_def.library.function}
        for name, node in _reachable(part, library, old):
            if _reaches_out(node.op, library):
                yield node.op, name


def _read(path: Path) -> Any:
    from tensorflow.core.protobuf import saved_model_pb2

    file = path / "saved_model.pb"
    if not file.is_file():
        raise ModelError(f"{path} is not a SavedModel: it has no saved_model.pb.")
    if file.stat().st_size > MOST_BYTES:
        raise ModelError(f"{file} has {file.stat().st_size:,} bytes, more than any SavedModel.")
    model = saved_model_pb2.SavedModel()
    try:
        model.ParseFromString(file.read_bytes())
    except Exception as error:  # protobuf's DecodeError, whose module depends on its implementation
        raise ModelError(f"{file} cannot be read: {error}") from error
    if not model.meta_graphs:
        raise ModelError(f"{file} holds no graph.")
    return model


def _reachable(part: Any, library: dict[str, Any], old: bool) -> Iterator[tuple[str, Any]]:
    """Every node that loading or calling may run, with the name of its function."""
    names = (part.saver_def.filename_tensor_name, part.saver_def.save_tensor_name, part.saver_def.restore_op_name)
    saver = set() if old else {name.split(":")[0] for name in names}
    waiting = [name for name in part.object_graph_def.concrete_functions if name in library]
    for node in part.graph_def.node:
        if node.name not in saver:
            yield "", node
            waiting += _called(node, library)
    seen: set[str] = set()
    gradients = {gradient.function_name: gradient.gradient_func for gradient in part.graph_def.library.gradient}
    while waiting:
        name = waiting.pop()
        if name in seen or name not in library:
            continue
        seen.add(name)
        waiting.append(gradients.get(name, ""))
        for node in library[name].node_def:
            yield name, node
            waiting += _called(node, library)


def _called(node: Any, library: dict[str, Any]) -> list[str]:
    names = [node.op] if node.op in library else []
    for value in node.attr.values():
        if value.HasField("func"):
            names.append(value.func.name)
        names += [function.name for function in value.list.func]
    return names


def _reaches_out(operation: str, library: dict[str, Any]) -> bool:
    if operation in library:
        return False
    if REACHES_OUT.search(operation):
        return True
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(operation)
    if definition is None:
        return True  # an operation of a library that would have to be loaded
    return definition.is_stateful and not HARMLESS_STATE.fullmatch(operation)


ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://")


def resolve_handle(handle: str) -> Path:
    """The folder of a SavedModel.

    Args:
        handle: a folder, or an address of TensorFlow Hub, which downloads it once.

    Raises:
        ModelError: there is no SavedModel, or it cannot be fetched.
    """
    path = Path(_fetched(handle)) if ADDRESS.match(handle) else Path(handle)
    if not (path / "saved_model.pb").is_file():
        what = "it has no saved_model.pb" if path.is_dir() else "there is no such folder"
        raise ModelError(f"--model.handle {handle} is not a SavedModel: {what} ({path.resolve()}).")
    return path.resolve()


def _fetched(handle: str) -> str:
    try:
        import tensorflow_hub
    except ImportError as error:
        raise ModelError(f"The handle {handle} needs TensorFlow Hub: pip install 'scena[hub]'.") from error
    try:
        return str(tensorflow_hub.resolve(handle))
    except Exception as error:  # any error of the network or the site
        raise ModelError(
            f"TensorFlow Hub cannot fetch {handle}: {error}. Download it, and give its folder as --model.handle."
        ) from error
