"""What the type arguments of a generic class were: `ScenarioBaseParams[MyData, MyModel]` -> {TData: MyData, …}."""

import types
import typing
from typing import Any


def type_bindings(cls: type) -> dict[Any, Any]:
    """Maps each TypeVar of the generic bases of `cls` to the argument it was given, through all levels of inheritance."""
    bindings: dict[Any, Any] = {}
    for base in getattr(cls, "__orig_bases__", ()):
        origin = typing.get_origin(base)
        if origin is None or origin is typing.Generic:
            continue
        for variable, argument in zip(getattr(origin, "__parameters__", ()), typing.get_args(base), strict=False):
            bindings[variable] = argument
    for parent in cls.__mro__[1:]:
        if "__orig_bases__" in parent.__dict__:
            for variable, argument in type_bindings_once(parent).items():
                bindings.setdefault(variable, substitute(argument, bindings))
    return bindings


def type_bindings_once(cls: type) -> dict[Any, Any]:
    """The arguments that `cls` itself gives to its direct generic bases."""
    bindings: dict[Any, Any] = {}
    for base in cls.__dict__.get("__orig_bases__", ()):
        origin = typing.get_origin(base)
        if origin is not None and origin is not typing.Generic:
            bindings.update(zip(getattr(origin, "__parameters__", ()), typing.get_args(base), strict=False))
    return bindings


def substitute(hint: Any, bindings: dict[Any, Any]) -> Any:
    """`hint` with its TypeVars replaced by their bindings, or by their bounds where nothing is bound."""
    if isinstance(hint, typing.TypeVar):
        bound = bindings.get(hint, hint)
        if bound is hint:
            return hint.__bound__ or Any
        return substitute(bound, bindings)
    arguments = typing.get_args(hint)
    if not arguments or not getattr(hint, "__parameters__", ()):
        return hint
    replaced = tuple(substitute(argument, bindings) for argument in arguments)
    origin = typing.get_origin(hint)
    if origin is types.UnionType or origin is typing.Union:
        return typing.Union[replaced]  # noqa: UP007
    return origin[replaced] if origin is not None else hint


def type_argument(cls: type, variable: Any) -> Any:
    """The class that stands for `variable` in `cls`: its argument, else its bound."""
    return substitute(variable, type_bindings(cls))
