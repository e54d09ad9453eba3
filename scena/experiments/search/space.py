"""What a search varies: `NAME=VALUES` for any parameter of the tree, conditional on the classes that are chosen.

A parameter takes part in a trial only if it exists under the classes that were chosen before it: `model.graph.filters` only
where `model.graph` is CNN. Nothing here knows Optuna; `study.py` draws the values.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from scena.errors import ExperimentError
from scena.params import Params, ParamsError, parse
from scena.params.cli.command_line import current_tree
from scena.params.cli.unknown import unknown_name
from scena.params.kinds import peel
from scena.params.settable import Index

Value = int | float | str
MOST_COMBINATIONS = 100_000
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Axis:
    """One parameter and the values it may have: a list of them, or a range."""

    name: str
    text: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False

    @property
    def values(self) -> tuple[Value, ...]:
        """The choices; numbers as numbers, so that they are ordered in plots."""
        return tuple(_number(text) if _NUMBER.fullmatch(text) else text for text in self.choices)

    def word(self, value: Value) -> str:
        """The flag that sets a value, in one word."""
        if self.choices:
            return f"--{self.name}={self.choices[self.values.index(value)]}"
        return f"--{self.name}={value!r}"


def parse_axis(text: str) -> Axis:
    """`NAME=a,b,c`, `NAME=low:high`, `NAME=low:high:step` or `NAME=log:low:high`."""
    name, equals, values = text.partition("=")
    name = name.strip().removeprefix("--")
    if not equals or not name or not values.strip():
        raise ExperimentError(
            f"--search {text!r}: expected NAME=VALUES, such as learning_rate.lr=log:1e-5:1e-2, model.units=4:16 or model.graph=CNN,MLP."
        )
    parts = values.split(":")
    log = parts[0] == "log"
    numbers = parts[1:] if log else parts
    if len(parts) > 1 and all(_NUMBER.fullmatch(part) for part in numbers):
        return _range(name, values, [float(part) for part in numbers], log)
    if log:
        raise ExperimentError(f"--search {text!r}: expected log:LOW:HIGH, such as log:1e-5:1e-2.")
    choices = tuple(_split(values))
    if len(set(choices)) != len(choices) or not all(choices):
        raise ExperimentError(f"--search {text!r}: each value must appear once, and none may be empty.")
    return Axis(name, values, choices)


def _range(name: str, text: str, numbers: list[float], log: bool) -> Axis:
    right = len(numbers) in ((2,) if log else (2, 3)) and numbers[0] < numbers[1]
    if not right or (log and numbers[0] <= 0) or (len(numbers) == 3 and numbers[2] <= 0):
        raise ExperimentError(
            f"--search {name}={text}: expected LOW:HIGH, LOW:HIGH:STEP or log:LOW:HIGH with LOW < HIGH"
            f"{' and LOW > 0' if log else ''}."
        )
    return Axis(name, text, (), numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else None, log)


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _number(text: str) -> Value:
    try:
        return int(text)
    except ValueError:
        return float(text)


class SearchSpace:
    """The axes of a search over a tree of parameters: `root` as it is before the command line, and the flags that all trials have."""

    def __init__(self, axes: list[Axis], root: Params, flags: list[str]) -> None:
        self.axes, self.root, self.flags = axes, root, flags
        self._indices: dict[tuple[str, ...], Index] = {}
        names = [axis.name for axis in axes]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ExperimentError(f"--search: {twice[0]} appears twice.")

    def draw(self, suggest: Callable[[Axis, bool], Value]) -> dict[str, Value]:
        """The values of one trial; calls `suggest(axis, whole numbers only)` for each parameter that exists."""
        chosen: dict[str, Value] = {}
        while (axis := self._next(chosen)) is not None:
            chosen[axis.name] = suggest(axis, self._is_whole(axis, chosen))
        return chosen

    def words(self, chosen: dict[str, Value]) -> list[str]:
        """The flags that set these values."""
        return [axis.word(chosen[axis.name]) for axis in self.axes if axis.name in chosen]

    def combinations(self) -> Iterator[dict[str, Value]]:
        """Every combination of values, for a grid."""
        yield from self._combine({}, self._finite_values)

    def first(self) -> dict[str, Value]:
        """The first value of each axis."""
        return self.draw(lambda axis, whole: axis.values[0] if axis.choices else int(axis.low) if whole else axis.low)

    def check(self) -> None:
        """Checks that every axis exists under some choice of classes, and that its values are right.

        Raises:
            ExperimentError: one of them is not; the message is that of the command line.
        """

        def first_values(axis: Axis, chosen: dict[str, Value]) -> list[Value]:
            found = self._sample_values(axis, chosen)
            return found if self._is_choice_of_class(axis, chosen) else found[:1]

        bases = list(islice(self._combine({}, first_values), MOST_COMBINATIONS))
        seen = {name for base in bases for name in base}
        for axis in self.axes:
            if axis.name not in seen:
                raise ExperimentError(f"--search: {unknown_name(axis.name, self._index({}), flags=False)}.")
        tried: set[tuple[str, Value]] = set()
        for base in bases:
            self._check_values(base)
            for axis in self.axes:
                if axis.name in base and not self._is_choice_of_class(axis, base):
                    fresh = [value for value in self._sample_values(axis, base) if (axis.name, value) not in tried]
                    tried.update((axis.name, value) for value in fresh)
                    for value in fresh:
                        self._check_values({**base, axis.name: value})

    def _check_values(self, chosen: dict[str, Value]) -> None:
        try:
            parse(self.root, [*self.flags, *self.words(chosen)])
        except ParamsError as error:
            raise ExperimentError(f"--search: {error}") from None

    def _combine(
        self, chosen: dict[str, Value], values: Callable[[Axis, dict[str, Value]], list[Value]]
    ) -> Iterator[dict[str, Value]]:
        axis = self._next(chosen)
        if axis is None:
            yield chosen
            return
        for value in values(axis, chosen):
            yield from self._combine({**chosen, axis.name: value}, values)

    def _next(self, chosen: dict[str, Value]) -> Axis | None:
        """The next axis that exists and has no value yet: classes first, because other axes depend on them."""
        index = self._index(chosen)
        there = [axis for axis in self.axes if axis.name not in chosen and index.get(axis.name)]
        structural = [axis for axis in there if index.get(axis.name)[0].kind.form != "leaf"]
        return next(iter([*structural, *there]), None)

    def _index(self, chosen: dict[str, Value]) -> Index:
        classes: dict[str, Value] = {name: value for name, value in chosen.items() if isinstance(value, str)}
        key = tuple(self.words(classes))
        if key not in self._indices:
            tree = current_tree(self.root, [*self.flags, *key])
            self._indices[key] = Index(tree.raw, tree.cls)
        return self._indices[key]

    def _is_choice_of_class(self, axis: Axis, chosen: dict[str, Value]) -> bool:
        return self._index(chosen).get(axis.name)[0].kind.form != "leaf"

    def _is_whole(self, axis: Axis, chosen: dict[str, Value]) -> bool:
        node = self._index(chosen).get(axis.name)[0]
        alternatives = peel(node.hint)[0] if node.kind.form == "leaf" else []
        return int in alternatives and float not in alternatives

    def _sample_values(self, axis: Axis, chosen: dict[str, Value]) -> list[Value]:
        if axis.choices:
            return list(axis.values)
        if self._is_whole(axis, chosen):
            if not all(number.is_integer() for number in (axis.low, axis.high, axis.step or 1.0)):
                raise ExperimentError(f"--search {axis.name}={axis.text}: {axis.name} is a whole number.")
            return [int(axis.low), int(axis.high)]
        return [axis.low, axis.high]

    def _finite_values(self, axis: Axis, chosen: dict[str, Value]) -> list[Value]:
        if axis.choices:
            return list(axis.values)
        whole = self._is_whole(axis, chosen)
        if axis.log or (axis.step is None and not whole):
            raise ExperimentError(
                f"--sampler grid needs a list or steps: {axis.name}={axis.text} has no end of values. "
                f"Write {axis.name}=VALUE,VALUE or LOW:HIGH:STEP."
            )
        step = axis.step or 1.0
        count = int((axis.high - axis.low) / step + 1e-9) + 1
        numbers = [axis.low + step * index for index in range(count)]
        return [int(number) for number in numbers] if whole else list(numbers)


def ready_space(name: str, root: Params, flags: list[str]) -> list[Axis]:
    """The axes of a predefined space: `depth_factor`, for a scenario with a network of the zoo."""
    if name != "depth_factor":
        raise ExperimentError(f"--space {name}: the only predefined space is depth_factor.")
    tree = current_tree(root, flags)
    names = {node.name for node in Index(tree.raw, tree.cls).nodes}
    owners = [own.removesuffix(".depth") for own in names if own.endswith(".depth")]
    owners = sorted(owner for owner in owners if f"{owner}.factor" in names)
    if not owners:
        raise ExperimentError(
            "--space depth_factor: this scenario has no network with a depth and a factor, such as MobileNetV2 or a ResNet of the zoo."
        )
    return [parse_axis(f"{owners[0]}.depth=0.5,1,1.5,2"), parse_axis(f"{owners[0]}.factor=1,2,4,8")]
