"""Reading the annotations of a params class: text, class variables, and what the type arguments of a generic class are."""

import functools
import re
import sys
import types
import typing
from typing import Any, ClassVar

from scena.errors import ParamsError


def is_class_variable(annotation: Any) -> bool:
    """Whether an annotation is ClassVar, as an object or as text."""
    if isinstance(annotation, str):
        return re.match(r"(\w+\.)*ClassVar\b", annotation) is not None
    return annotation is ClassVar or typing.get_origin(annotation) is ClassVar


def names_around(cls: type) -> dict[str, Any] | None:
    """The names of the function `cls` is made in that its text annotations use; later nothing could find them."""
    if "<locals>" not in cls.__qualname__:
        return None
    texts = [text for text in cls.__dict__.get("__annotations__", {}).values() if isinstance(text, str)]
    if not texts:
        return None
    wanted = set(re.findall(r"\w+", " ".join(texts)))
    function = cls.__qualname__.rpartition(".<locals>")[0]
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_qualname != function:
        frame = frame.f_back
    return {name: value for name, value in frame.f_locals.items() if name in wanted}


def evaluate(annotation: Any, owner: type, name: str) -> Any:
    """The type an annotation stands for, in the module (and function) of the class it is written in."""
    if not isinstance(annotation, str):
        return annotation
    module = vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}
    known = {**vars(typing), **module}
    local = {**(owner.__dict__.get("__local_names__") or {}), owner.__name__: owner}
    try:
        probe = type("_Probe", (), {"__annotations__": {name: annotation}})
        return typing.get_type_hints(probe, known, local, include_extras=True)[name]
    except (NameError, AttributeError) as error:
        raise ParamsError(
            f"{owner.__name__}.{name}: the type {annotation!r} cannot be resolved: {error}. Import the names of parameter "
            "types at the top of the module (not under `if TYPE_CHECKING`)."
        ) from None
    except SyntaxError:
        raise ParamsError(f"{owner.__name__}.{name}: the type {annotation!r} is not valid Python.") from None


def type_bindings(cls: type, owner: type | None = None) -> dict[Any, Any]:
    """Maps each TypeVar that `owner`, a base of `cls`, is declared with to what it stands for in `cls`.

    Without `owner`, the variables of all bases; where two bases use one variable differently, the nearer base counts.
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
    """A class for a generic type with its arguments, `Source[Digits]`, so that it can be instantiated knowing them."""
    origin = typing.get_origin(hint)
    if not isinstance(origin, type):
        return hint
    names = {"__module__": origin.__module__, "__doc__": origin.__doc__}
    return types.new_class(origin.__name__, (hint,), {}, lambda body: body.update(names))
