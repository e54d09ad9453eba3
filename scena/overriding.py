"""What the base classes of scenarios have in common: methods that users override, and an `__init__` that they extend."""

import inspect
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar


class Overridable:
    """A base whose subclasses are told about two mistakes that would pass in silence or be reported far away.

    A method with almost the name of one to override is called by nobody; an `__init__` that does not call the one above it leaves
    an object without parameters.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_misspelt(cls)

    if not TYPE_CHECKING:  # else every attribute would seem to exist

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name == "params":
                raise AttributeError(f"{kind} has no params: its __init__ must call super().__init__(…) first.")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def refuse_misspelt(cls: type) -> None:
    """Raises if a method of `cls` has almost the name of a method of Scena that `cls` does not override.

    Raises:
        TypeError: names both.
    """
    if cls.__module__.startswith("scena."):
        return
    parents = cls.__mro__[1:]
    known = {
        name
        for parent in parents
        if parent.__module__.startswith("scena.")
        for name, value in vars(parent).items()
        if not name.startswith("__") and (inspect.isfunction(value) or isinstance(value, classmethod))
    }
    own = {name for parent in cls.__mro__ if not parent.__module__.startswith("scena.") for name in vars(parent)}
    for name, value in vars(cls).items():
        if name in known or not inspect.isfunction(value) or any(name in vars(parent) for parent in parents):
            continue
        close = get_close_matches(name, known, 5, cutoff=0.86)
        if close and own.isdisjoint(close):
            raise TypeError(
                f"{cls.__name__}.{name} is called by nobody; did you mean {close[0]}? If it is a method of your own, give it "
                "another name."
            )


class TwoNames(Overridable):
    """Base of classes whose hooks can be overridden under either of two names."""

    __two_names__: ClassVar[dict[str, str]] = {}
    """The public name of each hook, and the other one."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = dict(cls.__dict__)
        for public, other in cls.__two_names__.items():
            if public in own and other in own and own[public] is not own[other]:
                raise TypeError(
                    f"{cls.__name__} defines {public} and {other}, which are two names of one method. Keep {public}."
                )
            for name, same in ((public, other), (other, public)):
                if name in own:
                    setattr(cls, same, own[name])
