"""What the type arguments of a generic class were: `ScenarioBaseParams[MyData, MyModel]` -> {TData: MyData, …}."""

import functools
import types
import typing
from typing import Any


def type_bindings(cls: type, owner: type | None = None) -> dict[Any, Any]:
    """Maps each TypeVar that `owner`, a base of `cls`, is declared with to what it stands for in `cls`.

    Without `owner` the variables of all bases are in one mapping; where two bases use one variable differently, the
    nearer base counts.
    """
    if owner is not None:
        return _find(cls, owner, {}) or {}
    bindings: dict[Any, Any] = {}
    for parent in cls.__mro__:
        for variable, argument in (_find(cls, parent, {}) or {}).items():
            bindings.setdefault(variable, argument)
    return bindings


def _find(cls: type, owner: type, known: dict[Any, Any]) -> dict[Any, Any] | None:
    if cls is owner:
        return known
    found: dict[Any, Any] | None = None
    for base in cls.__dict__.get("__orig_bases__", cls.__bases__):
        origin = typing.get_origin(base) or base
        if origin is typing.Generic or not isinstance(origin, type) or not issubclass(origin, owner):
            continue
        arguments = [_fill(argument, known) for argument in typing.get_args(base)]
        variables = getattr(origin, "__parameters__", ())
        found = _find(origin, owner, dict(zip(variables, arguments, strict=False))) or found
    return found


def _fill(hint: Any, bindings: dict[Any, Any]) -> Any:
    """As `substitute`, but a TypeVar that is bound to nothing stays."""
    if isinstance(hint, typing.TypeVar):
        return bindings.get(hint, hint)
    return _rebuild(hint, tuple(_fill(argument, bindings) for argument in typing.get_args(hint)))


def substitute(hint: Any, bindings: dict[Any, Any]) -> Any:
    """`hint` with its TypeVars replaced by their bindings, or by their bounds where nothing is bound."""
    if isinstance(hint, typing.TypeVar):
        bound = bindings.get(hint, hint)
        if isinstance(bound, typing.TypeVar):
            return bound.__bound__ or hint.__bound__ or Any
        return substitute(bound, {})
    return _rebuild(hint, tuple(substitute(argument, bindings) for argument in typing.get_args(hint)))


def _rebuild(hint: Any, arguments: tuple[Any, ...]) -> Any:
    if not arguments or not getattr(hint, "__parameters__", ()):
        return hint
    origin = typing.get_origin(hint)
    if origin is types.UnionType or origin is typing.Union:
        return typing.Union[arguments]  # noqa: UP007
    return origin[arguments] if origin is not None else hint


def type_argument(cls: type, variable: Any) -> Any:
    """The class that stands for `variable` in `cls`: its argument, else its bound."""
    return substitute(variable, type_bindings(cls))


@functools.cache
def concrete(hint: Any) -> Any:
    """A class for a generic type with its arguments, `Source[Digits]`, so that it can be instantiated knowing them;
    others as they are.
    """
    origin = typing.get_origin(hint)
    if not isinstance(origin, type):
        return hint
    names = {"__module__": origin.__module__, "__doc__": origin.__doc__}
    return types.new_class(origin.__name__, (hint,), {}, lambda body: body.update(names))
