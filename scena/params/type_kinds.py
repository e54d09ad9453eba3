"""What a type hint means for a parameter: a plain value (leaf), a params object, or a list or dict of params objects."""

import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from scena.errors import ParamsError
from scena.params.declare import Params, resolve_hints

LEAF, PARAMS, LIST, DICT = "leaf", "params", "list", "dict"


class Kind:
    """A type hint, taken apart."""

    __slots__ = ("aliases", "bases", "container", "form", "hint", "optional")

    def __init__(self, form: str, hint: Any, optional: bool, bases: tuple[type[Params], ...] = (), container: type = list,
                 aliases: Mapping[type[Params], Any] | None = None) -> None:  # fmt: skip
        self.form = form  # LEAF, PARAMS, LIST or DICT
        self.hint = hint  # without Optional and Annotated
        self.optional = optional
        self.bases = bases  # the params classes whose subclasses may stand here
        self.container = container  # list or tuple, for LIST
        self.aliases = aliases or {}  # `Base[Argument]` for each generic base

    def hints_of(self, cls: type[Params]) -> dict[str, Any]:
        """The field types of `cls` in this place: `Base[Argument]` fills in what `Base` leaves open."""
        return hints_of(cls, self.aliases.get(cls))


_known: dict[Any, Kind] = {}


def kind_of(hint: Any) -> Kind:
    """Takes a type hint apart; remembers the answer."""
    try:
        return _known[hint]
    except KeyError:
        kind = _known[hint] = _analyse(hint)
        return kind
    except TypeError:  # an unhashable hint, such as Literal of a list
        return _analyse(hint)


def hints_of(cls: type[Params], alias: Any = None) -> dict[str, Any]:
    """The field types of `cls`, where `alias` may be `cls[arguments]`."""
    if alias is None:
        return cls.hints()
    return resolve_hints(cls, dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(alias), strict=False)))


def peel(hint: Any) -> tuple[tuple[Any, ...], bool]:
    """The alternatives a hint allows, without Annotated and None, and whether None is one of them."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return peel(typing.get_args(hint)[0])
    if isinstance(hint, TypeVar):
        return peel(hint.__bound__ or Any)
    if isinstance(hint, typing.NewType):
        return peel(hint.__supertype__)
    if origin is typing.Union or origin is types.UnionType:
        parts = [peel(argument) for argument in typing.get_args(hint)]
        alternatives = tuple(dict.fromkeys(alternative for part, _ in parts for alternative in part))
        return alternatives, any(optional for _, optional in parts)
    if hint is None or hint is type(None):
        return (), True
    return (hint,), False


def params_class(hint: Any) -> type[Params] | None:
    """The params class behind `Cls` or `Cls[Argument]`, None for anything else."""
    origin = typing.get_origin(hint) or hint
    return origin if isinstance(origin, type) and issubclass(origin, Params) else None


def _analyse(hint: Any) -> Kind:
    alternatives, optional = peel(hint)
    bases = _bases(alternatives)
    if bases:
        return _of_params(PARAMS, alternatives, optional, bases, hint)
    if len(alternatives) == 1:
        (inner,) = alternatives
        origin, arguments = typing.get_origin(inner), typing.get_args(inner)
        if arguments and origin in (list, tuple, dict):
            items, item_optional = peel(arguments[-1] if arguments[-1] is not ... else arguments[0])
            bases = _bases(items)
            if bases:
                fixed = origin is tuple and (len(arguments) != 2 or arguments[1] is not ...)
                if item_optional or fixed or (origin is dict and arguments[0] is not str):
                    raise _unsupported(hint)
                return _of_params(DICT if origin is dict else LIST, items, optional, bases, hint, origin)
    if any(_contains_params(alternative) for alternative in alternatives):
        raise _unsupported(hint)
    leaf = Any if not alternatives else alternatives[0] if len(alternatives) == 1 else typing.Union[alternatives]  # noqa: UP007
    return Kind(LEAF, leaf, optional)


def _of_params(form: str, alternatives: tuple[Any, ...], optional: bool, bases: list[type[Params]], hint: Any,
               container: type = list) -> Kind:  # fmt: skip
    if len(bases) != len(alternatives):
        raise _unsupported(hint)
    aliases = {
        base: alternative for base, alternative in zip(bases, alternatives, strict=True) if base is not alternative
    }
    return Kind(form, hint, optional, tuple(bases), container, aliases)


def _bases(alternatives: tuple[Any, ...]) -> list[type[Params]]:
    return [cls for cls in map(params_class, alternatives) if cls is not None]


def _contains_params(hint: Any) -> bool:
    return params_class(hint) is not None or any(_contains_params(argument) for argument in typing.get_args(hint))


def _unsupported(hint: Any) -> ParamsError:
    return ParamsError(
        f"The type {hint!r} cannot be a parameter: params objects can stand alone (Cls, Cls | None), in list[Cls], tuple[Cls, ...] or "
        "in dict[str, Cls]; give deeper structure a params class of its own."
    )
