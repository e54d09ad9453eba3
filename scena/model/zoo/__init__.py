"""Networks for pictures by name, each at any factor and in any algebra. `create_network` builds one; `params` lists them without Keras."""

from typing import TYPE_CHECKING, Any

__all__ = ["copy_weights", "count_flops", "create_network", "load_pretrained"]

_HOMES = {
    "create_network": "network",
    "copy_weights": "weights",
    "load_pretrained": "pretrained",
    "count_flops": "flops",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


if TYPE_CHECKING:
    from scena.model.zoo.flops import count_flops as count_flops
    from scena.model.zoo.network import create_network as create_network
    from scena.model.zoo.pretrained import load_pretrained as load_pretrained
    from scena.model.zoo.weights import copy_weights as copy_weights
