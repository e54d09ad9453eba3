"""The root of the flags of a training, as `scena train` has it."""

import types
from typing import Any

from scena.params import Params, param


def training_root(scenario: Any) -> Any:
    """A params object with the scenario's default trainer parameters under `trainer`."""
    trainer = scenario.default_trainer_params()

    def body(namespace: dict[str, Any]) -> None:
        namespace["__annotations__"] = {"trainer": type(trainer)}
        namespace["trainer"] = param(trainer)

    return types.new_class("Root", (Params,), {}, body)()
