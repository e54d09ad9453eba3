"""The runtimes that predict with an exported model: one params class each. Needs no Keras."""

from scena.params import Params


class RuntimeParams(Params, abstract=True):
    """What runs an exported model. Subclass it with `name="myruntime", builds=".myruntime:MyRuntime"` (a `Runtime`)."""


class KerasRuntimeParams(RuntimeParams, name="keras", builds=".base:KerasRuntime"):
    """Keras, with the backend of `KERAS_BACKEND`."""
