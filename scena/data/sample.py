"""One instance of data on its way through the pipeline."""

from typing import Any, Self


class Sample:
    """Inputs, targets, outputs and meta of one instance. Treat it as immutable: `new_…` return changed copies.

    During processing `inputs` and `targets` may be anything (a file name at first); what arrives at the batch must be a
    dict of arrays that match the specs of the data class. `meta` is kept beside the batch as it is.
    """

    __slots__ = ("index", "inputs", "meta", "outputs", "targets")

    def __init__(self, inputs: Any = None, targets: Any = None, outputs: Any = None, meta: Any = None) -> None:
        self.inputs = inputs
        self.targets = targets
        self.outputs = outputs
        self.meta = meta
        self.index: int | None = None
        """Position in the source, set by the pipeline: it names the sample in messages."""

    def _copy(self) -> Self:
        copy = type(self).__new__(type(self))
        copy.inputs = self.inputs
        copy.targets = self.targets
        copy.outputs = self.outputs
        copy.meta = self.meta
        copy.index = self.index
        return copy

    def new_inputs(self, inputs: Any) -> Self:
        """A copy with other inputs."""
        copy = self._copy()
        copy.inputs = inputs
        return copy

    def new_targets(self, targets: Any) -> Self:
        """A copy with other targets."""
        copy = self._copy()
        copy.targets = targets
        return copy

    def new_outputs(self, outputs: Any) -> Self:
        """A copy with other outputs."""
        copy = self._copy()
        copy.outputs = outputs
        return copy

    def new_meta(self, meta: Any) -> Self:
        """A copy with other meta."""
        copy = self._copy()
        copy.meta = meta
        return copy

    def identity(self) -> str:
        """How messages name this sample: its index in the source and a short form of its meta."""
        name = f"sample {self.index}" if self.index is not None else "a sample"
        if self.meta is None:
            return name
        meta = repr(self.meta)
        return f"{name} (meta: {meta if len(meta) <= 200 else meta[:197] + '...'})"

    def _parts(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in ("inputs", "targets", "outputs", "meta")}
        return {name: value for name, value in parts.items() if value is not None}

    def __repr__(self) -> str:
        from scena.display import short

        return f"Sample({', '.join(f'{name}={short(value)}' for name, value in self._parts().items())})"

    def _repr_html_(self) -> str:
        """A table for notebooks: types and shapes."""
        from scena.display import html_table, short

        return html_table([(name, short(value)) for name, value in self._parts().items()], title="Sample")
