"""What a type hint means for a parameter, and which params classes can be chosen for it.

A hint stands for a plain value (leaf), a params object, or a list or dict of params objects. Only classes that are imported already
can be chosen, and those that installed plugins declare by that name (`scena.plugins`): a file never names a module.
"""

import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from scena.errors import ParamsError, did_you_mean
from scena.params.declare import Field, Params, resolve_hints, short_name, subclasses
from scena.plugins import PluginError, added, load

Form = Literal["leaf", "params", "list", "dict"]
CLASS = "class"  # the key of the class name in raw trees and files; a Python keyword, so no field can have this name


class Kind:
    """A type hint, taken apart."""

    __slots__ = ("aliases", "bases", "container", "form", "hint", "optional")

    def __init__(self, form: Form, hint: Any, optional: bool, bases: tuple[type[Params], ...] = (), container: type = list,
                 aliases: Mapping[type[Params], Any] | None = None) -> None:  # fmt: skip
        self.form = form
        self.hint = hint  # without Optional and Annotated
        self.optional = optional
        self.bases = bases  # the params classes whose subclasses may stand here
        self.container = container  # list or tuple, for a list
        self.aliases = aliases or {}  # `Base[Argument]` for each generic base

    def hints_of(self, cls: type[Params]) -> dict[str, Any]:
        """The field types of `cls` in this place: `Base[Argument]` fills in what `Base` leaves open."""
        alias = self.aliases.get(cls)
        return cls.hints() if alias is None else resolve_hints(cls, typing.get_args(alias))

    def expected(self) -> str:
        """The params objects that may stand here, in words."""
        return " or ".join(base.__name__ for base in self.bases)


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


def _params_class(hint: Any) -> type[Params] | None:
    """The params class behind `Cls` or `Cls[Argument]`, None for anything else."""
    origin = typing.get_origin(hint) or hint
    return origin if isinstance(origin, type) and issubclass(origin, Params) else None


def _analyse(hint: Any) -> Kind:
    alternatives, optional = peel(hint)
    form: Form = "params"
    container, items = list, alternatives
    if len(alternatives) == 1:
        origin, arguments = typing.get_origin(alternatives[0]), typing.get_args(alternatives[0])
        if arguments and origin in (list, tuple, dict):
            inner, item_optional = peel(arguments[-1] if arguments[-1] is not ... else arguments[0])
            fixed = origin is tuple and (len(arguments) != 2 or arguments[1] is not ...)
            if not (item_optional or fixed or (origin is dict and arguments[0] is not str)):
                form = "dict" if origin is dict else "list"
                container, items = origin, inner
    bases = [cls for cls in map(_params_class, items) if cls is not None]
    if bases and len(bases) == len(items):
        aliases = {base: item for base, item in zip(bases, items, strict=True) if base is not item}
        return Kind(form, hint, optional, tuple(bases), container, aliases)
    if any(_contains_params(alternative) for alternative in alternatives):
        raise ParamsError(
            f"The type {hint!r} cannot be a parameter: params objects can stand alone (Cls, Cls | None), in list[Cls], "
            "tuple[Cls, ...] or in dict[str, Cls]; give deeper structure a params class of its own."
        )
    leaf = Any if not alternatives else alternatives[0] if len(alternatives) == 1 else typing.Union[alternatives]  # noqa: UP007
    return Kind("leaf", leaf, optional)


def _contains_params(hint: Any) -> bool:
    return _params_class(hint) is not None or any(map(_contains_params, typing.get_args(hint)))


_remembered: dict[tuple[object, ...], dict[str, type[Params]]] = {}
_generation = -1


def candidates(kind: Kind, field: Field | None) -> dict[str, type[Params]]:
    """name -> class, of everything that can be chosen for a field; a name that two classes share is written `module:Name`."""
    global _generation
    if _generation != Params.__generation__:
        _remembered.clear()
        _generation = Params.__generation__
    explicit = field.choices if field is not None else None
    key = (kind.bases, explicit)
    if key not in _remembered:
        classes = _classes(kind, explicit)
        short = [short_name(cls) for cls in classes]
        names = (name if short.count(name) == 1 else full_name(cls) for name, cls in zip(short, classes, strict=True))
        _remembered[key] = dict(zip(names, classes, strict=True))
    return _remembered[key]


def _classes(kind: Kind, explicit: tuple[object, ...] | None) -> list[type[Params]]:
    if explicit is not None:
        return [cls for cls in explicit if isinstance(cls, type) and issubclass(cls, Params)]
    found = dict.fromkeys(cls for base in kind.bases for cls in subclasses(base))
    for cls, replaced in Params.__stand_ins__.items():
        if any(issubclass(base, replaced) for base in kind.bases):
            found[cls] = None
    latest: dict[str, type[Params]] = {}
    for cls in found:  # a class defined again, as in a notebook, replaces the former one, but not the declared class
        if latest.get(full_name(cls)) not in kind.bases:
            latest[full_name(cls)] = cls
    concrete = [cls for cls in latest.values() if not cls.__abstract__]
    return [cls for cls in concrete if not _is_mere_base(cls)] or concrete


def _is_mere_base(cls: type[Params]) -> bool:
    """A class that builds nothing while its subclasses do is there to choose from, not to be chosen."""
    return cls.__builds__ is None and any(child.__builds__ is not None for child in subclasses(cls))


def full_name(cls: type) -> str:
    """`module:Name`, which is never ambiguous."""
    return f"{cls.__module__}:{cls.__qualname__}"


def name_of(cls: type[Params], kind: Kind, field: Field | None) -> str:
    """The name by which `cls` is chosen in this field."""
    options = candidates(kind, field)
    short = short_name(cls)
    if options.get(short) is cls:
        return short
    unlisted = short if short not in options else full_name(cls)
    return next((name for name, option in options.items() if option is cls), unlisted)


def find(name: str, kind: Kind, field: Field | None, current: type[Params] | None = None) -> type[Params] | None:
    """The class called `name` (its short name, class name or `module:Name`), or None.

    `current` is the class that stands there now: a default may be of a class that cannot be chosen otherwise.
    """
    found = _imported(name, kind, field, current)
    open_choice = bool(name) and ":" not in name and (field is None or field.choices is None)
    if found is None and open_choice and any(load(base, name) for base in _plugin_kinds(kind)):
        found = _imported(name, kind, field, current)
        if found is None:
            what = f"An installed plugin declares {name!r}, but its module defines no such class"
            raise PluginError(f"{what}. Update or remove it.")
    return found


def listed(kind: Kind, field: Field | None) -> list[str]:
    """The names that can be chosen for a field, those of installed plugins too; no plugin is imported for it."""
    options = list(candidates(kind, field))
    if field is not None and field.choices is not None:
        return options
    return list(dict.fromkeys([*options, *(name for base in _plugin_kinds(kind) for name in added(base))]))


def _plugin_kinds(kind: Kind) -> list[str]:
    """The kinds of plugins that a choice may be of: the declared classes, and bases to choose from above and below them."""
    found: dict[type[Params], None] = dict.fromkeys(kind.bases)
    for base in kind.bases:
        if base.__abstract__:
            near = [*(parent for parent in base.__mro__ if issubclass(parent, Params)), *subclasses(base)]
            found.update(dict.fromkeys(cls for cls in near if cls.__abstract__ and cls is not Params))
    return [short_name(cls) for cls in found]


def named_choices(field: Field) -> list[Any] | None:
    """The values that may be chosen for a field, with the names that plugins add; None if any value may be."""
    if field.choices is None:
        return None
    return list(dict.fromkeys([*field.choices, *added(field.plugin)])) if field.plugin else list(field.choices)


def _imported(name: str, kind: Kind, field: Field | None, current: type[Params] | None) -> type[Params] | None:
    options = candidates(kind, field)
    if name in options:
        return options[name]
    every = [*options.values(), *([current] if current is not None and current not in options.values() else [])]
    exact = [cls for cls in every if full_name(cls) == name]
    matching = exact or [cls for cls in every if name in (cls.__name__, short_name(cls))]
    if len(matching) > 1:
        raise ParamsError(f"{name!r} is ambiguous: choose {' or '.join(map(full_name, matching))}")
    return matching[0] if matching else None


def class_of(raw: Any, kind: Kind, field: Field | None) -> type[Params] | None:
    """The class a raw object is of, or None if there is none, or an unknown one."""
    if not isinstance(raw, dict):
        return None
    name = raw.get(CLASS)
    if name is None:
        return kind.bases[0] if len(kind.bases) == 1 and not kind.bases[0].__abstract__ else None
    default = field.default if field is not None else None
    current = type(default) if isinstance(default, Params) else None
    return find(name, kind, field, current) if isinstance(name, str) else None


def unknown_class(name: object, kind: Kind, field: Field | None) -> str:
    """The message about a class name that does not exist here."""
    options = listed(kind, field)
    if not options:
        return f"there is no {kind.expected()} to choose; received {name!r}. Import the module that defines it."
    return f"unknown {kind.expected()} {name!r}{did_you_mean(str(name), options)}; choose from: {', '.join(options)}"
