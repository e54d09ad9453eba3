"""Which params classes can be chosen for a field, and by which names.

Only classes that are imported already can be found, and those that installed plugins declare by that name (`scena.plugins`): a file
never names a module.
"""

from typing import Any

from scena.errors import ParamsError, did_you_mean
from scena.params.declare import Field, Params, short_name, subclasses
from scena.params.type_kinds import Kind
from scena.plugins import PluginError, added, load

CLASS = "class"  # the key of the class name in raw trees and files; a Python keyword, so no field can have this name

_remembered: dict[tuple[object, ...], dict[str, type[Params]]] = {}
_generation = -1


def candidates(kind: Kind, field: Field | None) -> dict[str, type[Params]]:
    """name -> class, of everything that can be chosen for a field; a name that two classes share is written
    `module:Name`.
    """
    global _generation
    if _generation != Params.__generation__:
        _remembered.clear()
        _generation = Params.__generation__
    explicit = field.choices if field is not None else None
    key = (kind.bases, explicit)
    if key not in _remembered:
        _remembered[key] = _named(_classes(kind, explicit))
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
    chosen = [cls for cls in latest.values() if not cls.__abstract__ and not _is_mere_base(cls)]
    return chosen or [cls for cls in latest.values() if not cls.__abstract__]


def _is_mere_base(cls: type[Params]) -> bool:
    """A class that builds nothing while its subclasses do is there to choose from, not to be chosen."""
    return cls.__builds__ is None and any(child.__builds__ is not None for child in subclasses(cls))


def _named(classes: list[type[Params]]) -> dict[str, type[Params]]:
    short = [short_name(cls) for cls in classes]
    return {name if short.count(name) == 1 else full_name(cls): cls for name, cls in zip(short, classes, strict=True)}


def full_name(cls: type) -> str:
    """`module:Name`, which is never ambiguous."""
    return f"{cls.__module__}:{cls.__qualname__}"


def name_of(cls: type[Params], kind: Kind, field: Field | None) -> str:
    """The name by which `cls` is chosen in this field."""
    options = candidates(kind, field)
    short = short_name(cls)
    if options.get(short) is cls:
        return short
    return next(
        (name for name, option in options.items() if option is cls), short if short not in options else full_name(cls)
    )


def find(name: str, kind: Kind, field: Field | None, current: type[Params] | None = None) -> type[Params] | None:
    """The class called `name` (its short name, class name or `module:Name`), or None.

    `current` is the class that stands there now: a default may be of a class that cannot be chosen otherwise.
    """
    found = _imported(name, kind, field, current)
    open_choice = bool(name) and ":" not in name and (field is None or field.choices is None)
    if found is None and open_choice and any(load(base, name) for base in _bases(kind)):
        found = _imported(name, kind, field, current)
        if found is None:
            raise PluginError(
                f"An installed plugin declares {name!r}, but its module defines no such class. Update or remove it."
            )
    return found


def listed(kind: Kind, field: Field | None) -> list[str]:
    """The names that can be chosen for a field, those of installed plugins too; no plugin is imported for it."""
    options = list(candidates(kind, field))
    if field is not None and field.choices is not None:
        return options
    return list(dict.fromkeys([*options, *(name for base in _bases(kind) for name in added(base))]))


def _bases(kind: Kind) -> list[str]:
    """The kinds of plugins that a choice may be of: the declared classes, and bases to choose from above and below them."""
    found: dict[type[Params], None] = dict.fromkeys(kind.bases)
    for base in kind.bases:
        if base.__abstract__:
            near = [*(parent for parent in base.__mro__ if issubclass(parent, Params)), *subclasses(base)]
            found.update(dict.fromkeys(cls for cls in near if cls.__abstract__ and cls is not Params))
    return [short_name(cls) for cls in found]


def named_choices(field: Field) -> list[Any] | None:
    """The values that may be chosen for a field, with the names that plugins add; None if any value may be."""
    if field.choices is None or not field.plugin:
        return None if field.choices is None else list(field.choices)
    return list(dict.fromkeys([*field.choices, *added(field.plugin)]))


def _imported(name: str, kind: Kind, field: Field | None, current: type[Params] | None) -> type[Params] | None:
    options = candidates(kind, field)
    if name in options:
        return options[name]
    every = [*options.values(), *([current] if current is not None and current not in options.values() else [])]
    exact = [cls for cls in every if full_name(cls) == name]
    matching = exact or [cls for cls in every if name in (cls.__name__, short_name(cls))]
    if len(matching) > 1:
        names = " or ".join(full_name(cls) for cls in matching)
        raise ParamsError(f"{name!r} is ambiguous: choose {names}")
    return matching[0] if matching else None


def class_of(raw: Any, kind: Kind, field: Field | None) -> type[Params] | None:
    """The class a raw object is of, or None if there is none, or an unknown one."""
    if not isinstance(raw, dict):
        return None
    name = raw.get(CLASS)
    if name is None:
        return kind.bases[0] if len(kind.bases) == 1 and not kind.bases[0].__abstract__ else None
    default = field.default if field is not None else None
    return (
        find(name, kind, field, type(default) if isinstance(default, Params) else None)
        if isinstance(name, str)
        else None
    )


def unknown_class(name: object, kind: Kind, field: Field | None) -> str:
    """What to tell about a class name that does not exist here."""
    options = listed(kind, field)
    what = " or ".join(base.__name__ for base in kind.bases)
    if not options:
        return f"there is no {what} to choose; received {name!r}. Import the module that defines it."
    return f"unknown {what} {name!r}{did_you_mean(str(name), options)}; choose from: {', '.join(options)}"
