"""A checked request for a network: its catalogue entry, input size, setting and options; and counting it. No Keras here."""

import importlib
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from scena.errors import ModelError, did_you_mean
from scena.model.zoo.catalogue import MODELS, Entry
from scena.model.zoo.namespace import Depth, Layers, Options, Setting, Shape, Tensor, Totals
from scena.model.zoo.params import SMALLEST_FACTOR, AlgebraParams, DataFormat, Framework, Leave, WayOut


class Request(NamedTuple):
    """A network that can be built or counted."""

    entry: Entry
    input_size: tuple[int, ...]
    setting: Setting
    options: Options
    variant: str | None = None

    def build(self, nn: Layers, image: Tensor) -> Tensor | dict[str, Tensor]:
        """Builds the network from an image to its outputs."""
        builder_name, more = self.entry.variants.get(self.variant or "", (self.entry.builder, {}))
        module, _, function = builder_name.partition(":")
        builder = getattr(importlib.import_module(f"scena.model.zoo.{module}"), function)
        return builder(nn, nn.enter(image), self.options, **self.entry.arguments, **more)


def request(
    name: str,
    input_size: Sequence[int] | None = None,
    num_classes: int | None = None,
    factor: float = 1,
    framework: str = Framework.TENSORFLOW,
    data_format: str | None = None,
    *,
    depth: Depth | None = None,
    dropout: float | None = None,
    l2: float = 0.0,
    embedding: int | None = None,
    variant: str | None = None,
    algebra: AlgebraParams | None = None,
) -> Request:
    """Checks a request; the arguments are those of `create_network`.

    Raises:
        ModelError: there is no such network, or it does not support an option.
    """
    if name not in MODELS:
        raise ModelError(f"There is no network {name!r}{did_you_mean(name, MODELS)}. `scena zoo` lists them.")
    entry = MODELS[name]
    size = _checked_size(name, entry, input_size)
    _check_options(name, entry, {"depth": depth, "dropout": dropout, "embedding": embedding, "variant": variant})
    if variant is not None and variant not in entry.variants:
        raise ModelError(
            f"{name} has no variant {variant!r}{did_you_mean(variant, entry.variants)}; it has {', '.join(entry.variants)}."
        )
    setting = Setting(
        _choice(Framework, framework, "framework"),
        factor,
        _choice(DataFormat, data_format or entry.data_format, "data_format"),
        l2,
        algebra or AlgebraParams(),
    )
    _check_algebra(setting)
    options = Options(entry.num_classes if num_classes is None else num_classes, depth, dropout, embedding)
    return Request(entry, size, setting, options, variant)


def count_network(name: str, *args: Any, **kwargs: Any) -> Totals:
    """Counts a network without building it; the arguments are those of `create_network`.

    Raises:
        ModelError: there is no such network, or it does not support an option.
    """
    asked = request(name, *args, **kwargs)
    nn = Layers(asked.setting._replace(data_format=DataFormat.NHWC))  # the data format changes no number
    asked.build(nn, Shape((1, *asked.input_size)))
    return nn.totals


def _checked_size(name: str, entry: Entry, size: Sequence[int] | None) -> tuple[int, ...]:
    size = tuple(entry.input_size if size is None else size)
    if len(size) != 3 or min(size[:2]) < entry.smallest or size[2] < 1:
        raise ModelError(
            f"{name} takes images of height, width and channels, at least {entry.smallest} × {entry.smallest}. Received: {size}"
        )
    return size


def _check_options(name: str, entry: Entry, given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None and option not in entry.options:
            having = [other for other, model in MODELS.items() if option in model.options]
            raise ModelError(
                f"{name} has no {option}. Received: {option}={value!r}. Networks that have it: {', '.join(having)}."
            )


def _check_algebra(setting: Setting) -> None:
    if not SMALLEST_FACTOR <= setting.factor < inf:
        raise ModelError(
            f"factor divides the channels and must be at least {SMALLEST_FACTOR}. Received: {setting.factor}"
        )
    way, typed = setting.algebra, setting.framework.algebra != "real"
    if not typed and way != AlgebraParams():
        changed = [name for name in way.__params__ if getattr(way, name) != getattr(AlgebraParams(), name)]
        raise ModelError(
            f"The framework {setting.framework.value} has real numbers only, so algebra.{changed[0]} would have no effect. "
            "Choose upstride_type1, upstride_type2 or upstride_type3."
        )
    if typed and way.leave is Leave.AFTER and way.way_out is WayOut.CONCAT:
        raise ModelError(
            "After the last layer, way_out cannot be concat: there would be more outputs than classes. "
            "Choose basic, avg_pool, max_pool or norm, or leave before the last layer."
        )


def _choice(kind: Any, value: str, name: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise ModelError(f"{name} must be one of {', '.join(kind)}. Received: {value!r}") from None
