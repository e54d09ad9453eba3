"""What the base classes of scenarios have in common: methods that users override, and an `__init__` that they extend."""

from collections.abc import Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from scena.errors import ScenaError


class OverridingError(ScenaError, TypeError):
    """A class overrides something that does not exist, or in a way that has no effect."""


class Overridable:
    """Base of classes that users extend. It refuses mistakes that would otherwise pass unnoticed, or fail far away.

    These are a method whose name is almost that of a hook, a hook in the wrong class, two names of one hook in one class, and an
    `__init__` that does not call the one above it.
    """

    __two_names__: ClassVar[dict[str, str]] = {}
    """The public name of each hook that has two, and tfaip's name."""
    __attributes__: ClassVar[dict[str, str]] = {}
    """Class attributes that say what a hook would return, and the (public) name of that hook."""
    __elsewhere__: ClassVar[dict[str, str]] = {}
    """Names of hooks that are easily written into this class by mistake, and the class they belong to."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_misspelt(cls)
        _refuse_misspelt_attributes(cls)
        own = dict(cls.__dict__)
        for name, place in cls.__elsewhere__.items():
            if name in own and not _is_scenas(cls):
                raise OverridingError(
                    f"{cls.__name__}.{name} is never called: {name} belongs to {place}. Move it there."
                )
        for public, other in cls.__two_names__.items():
            if public in own and other in own and own[public] is not own[other]:
                raise OverridingError(
                    f"{cls.__name__} defines {public} and {other}, which are two names of one method. Keep {public}."
                )
            for name, same in ((public, other), (other, public)):
                if name in own:
                    setattr(cls, same, own[name])
        for attribute, hook in cls.__attributes__.items():
            base = next(parent for parent in reversed(cls.__mro__) if attribute in vars(parent))
            if own.get(attribute) is None or base is cls:
                continue
            names = {hook, cls.__two_names__.get(hook, hook)}
            if both := sorted(names & own.keys()):
                raise OverridingError(
                    f"{cls.__name__} defines {attribute} and {both[0]}, which say the same. Keep {attribute}."
                )
            for name in names:  # takes precedence over a hook that a class in between defines
                setattr(cls, name, getattr(base, name))

    if not TYPE_CHECKING:  # else every attribute would seem to exist

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name == "params":
                raise AttributeError(f"{kind} has no params: its __init__ must call super().__init__(…) first.")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def spelled(cls: type[Overridable], hook: str) -> str:
    """`Class.hook` for messages, with the name under which the class defines the hook: its public name, or tfaip's."""
    name = getattr(getattr(cls, hook), "__name__", hook)
    return f"{cls.__name__}.{name if name == cls.__two_names__.get(hook) else hook}"


def refuse_misspelt(cls: type) -> None:
    """Raises if a method of `cls` has almost the name of a method of Scena that `cls` does not override.

    Raises:
        OverridingError: names both.
    """
    if _is_scenas(cls):
        return
    parents = cls.__mro__[1:]
    known = {
        name
        for parent in parents
        if _is_scenas(parent)
        for name, value in vars(parent).items()
        if not name.startswith("__") and isinstance(value, FunctionType | classmethod)
    }
    own = {name for parent in cls.__mro__ if not _is_scenas(parent) for name in vars(parent)}
    for name, value in vars(cls).items():
        if name in known or not isinstance(value, FunctionType) or any(name in vars(parent) for parent in parents):
            continue
        close = _close(name, known, 5, 0.86)
        if close and own.isdisjoint(close):
            public = [other for other in close if not other.startswith("_")]
            meant = public[0] if public and not name.startswith("_") else close[0]
            raise OverridingError(
                f"{cls.__name__}.{name} is never called; did you mean {meant}? If it is a method of your own, rename it."
            )


def _refuse_misspelt_attributes(cls: type[Overridable]) -> None:
    for name in vars(cls):
        if name.startswith("_") or any(hasattr(parent, name) for parent in cls.__mro__[1:]) or _is_scenas(cls):
            continue
        swapped = [attribute for attribute in cls.__attributes__ if sorted(attribute) == sorted(name)]
        for close in swapped or _close(name, cls.__attributes__, 1, 0.8):
            if close not in vars(cls):
                raise OverridingError(f"{cls.__name__}.{name} is never read; did you mean {close}?")


def _close(name: str, known: Iterable[str], count: int, cutoff: float) -> list[str]:
    from difflib import get_close_matches  # late: `--help` seldom needs it

    return get_close_matches(name, known, count, cutoff)


def _is_scenas(cls: type) -> bool:
    return cls.__module__.startswith("scena.") and not cls.__module__.startswith("scena.examples.")
