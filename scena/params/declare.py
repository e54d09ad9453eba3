"""Declaring what can be set: `Params` and `param()`.

A params class is pure Python: nothing here, and nothing a params module needs, imports numpy, Keras or TensorFlow.
Reading values from files and from the command line lives in the sibling modules.
"""

import copy
import difflib
import importlib
import importlib.util
import sys
import typing
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform, overload

from scena.params.errors import ParamsError
from scena.params.generics import substitute, type_bindings

T = TypeVar("T")


class _Unset:
    """Stands for 'no default was given'; differs from None, which is a value."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()


class Field:
    """One declared parameter of a params class."""

    __slots__ = ("aliases", "bounds", "choices", "default", "flat", "help", "hidden", "inline", "name", "owner", "required")

    def __init__(self, default: Any = UNSET, *, help: str = "", required: bool = False, hidden: bool = False,
                 flat: bool | str = False, inline: bool = False, choices: Iterable[Any] | None = None,
                 aliases: Iterable[str] = (), bounds: dict[str, float] | None = None) -> None:  # fmt: skip
        self.name = ""
        self.owner: type[Params] = Params
        self.default = default
        self.help = help
        self.required = required
        self.hidden = hidden
        self.flat = flat
        self.inline = inline
        self.choices = tuple(choices) if choices is not None else None
        self.aliases = tuple(aliases)
        self.bounds = bounds or {}

    def __repr__(self) -> str:
        return f"<Field {self.owner.__name__}.{self.name}>"


@overload
def param(default: T, *, help: str = "", required: bool = False, hidden: bool = False, flat: bool | str = False,
          inline: bool = False, choices: Iterable[Any] | None = None, aliases: Iterable[str] = (),
          ge: float | None = None, gt: float | None = None, le: float | None = None, lt: float | None = None) -> T: ...  # fmt: skip
@overload
def param(*, help: str = "", required: bool = False, hidden: bool = False, flat: bool | str = False,
          inline: bool = False, choices: Iterable[Any] | None = None, aliases: Iterable[str] = (),
          ge: float | None = None, gt: float | None = None, le: float | None = None, lt: float | None = None) -> Any: ...  # fmt: skip
def param(default: Any = UNSET, *, help: str = "", required: bool = False, hidden: bool = False, flat: bool | str = False,
          inline: bool = False, choices: Iterable[Any] | None = None, aliases: Iterable[str] = (),
          ge: float | None = None, gt: float | None = None, le: float | None = None, lt: float | None = None) -> Any:  # fmt: skip
    """Declares one parameter of a `Params` class.

    Example: `filters: list[int] = param([40, 20], help="filters of each convolution")`

    Args:
        default: the value if nothing else is said; copied for each instance, so lists and params instances are safe. A field that
            holds params and has no default starts with an instance of its declared class.
        help: what the parameter does, shown by `--help`.
        required: must be given by a file or on the command line.
        hidden: state that is stored with the parameters but is not a flag.
        flat: puts the field at the root of the command line, under its own name or under the name given.
        inline: the fields of this params object take its place: `--lav.batch_size` instead of `--lav.pipeline.batch_size`.
        choices: the values, or params classes, that may be chosen; default: all subclasses of the declared class.
        aliases: other spellings that are accepted, but not shown.
        ge, gt, le, lt: bounds of a number (`>=`, `>`, `<=`, `<`).
    """
    bounds = {name: bound for name, bound in (("ge", ge), ("gt", gt), ("le", le), ("lt", lt)) if bound is not None}
    return Field(default, help=help, required=required, hidden=hidden, flat=flat, inline=inline, choices=choices, aliases=aliases, bounds=bounds)


@dataclass_transform(kw_only_default=True)
class Params:
    """Base of everything that can be set. Subclassing it declares a keyword-only record, as a dataclass would be.

    Class keywords:
        builds: where the class lives that these parameters configure: ".model:MyModel" (a module beside this one), ":MyModel" (this
            module) or "package.module:MyModel". It is imported when it is first needed.
        shorthand: the field that a bare value sets, so that `--learning_rate 0.01` means `--learning_rate.lr 0.01`.
        abstract: the class is a base to choose from and cannot be chosen itself.
    """

    __params__: ClassVar[dict[str, Field]] = {}
    __builds__: ClassVar[str | None] = None
    __shorthand__: ClassVar[str | None] = None
    __abstract__: ClassVar[bool] = True

    def __init_subclass__(cls, builds: str | None = None, shorthand: str | None = None, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__abstract__ = abstract
        if builds is not None:
            if ":" not in builds:
                raise TypeError(f"{cls.__name__}: builds={builds!r} must name a module and a class, for example \".model:MyModel\".")
            cls.__builds__ = _absolute(builds, cls)
        if shorthand is not None:
            cls.__shorthand__ = shorthand
        cls.__params__ = _collect(cls)
        if "<locals>" in cls.__qualname__:  # string annotations of a class made inside a function need that function's names
            cls.__local_names__ = sys._getframe(1).f_locals
        cls.__hints__ = None

    __local_names__: ClassVar[dict[str, Any] | None] = None
    __hints__: ClassVar[dict[str, Any] | None] = None

    def __init__(self, **values: Any) -> None:
        declared = type(self).__params__
        for name in values:
            if name not in declared:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}{did_you_mean(name, declared)}")
        for name, field in declared.items():
            object.__setattr__(self, name, values[name] if name in values else type(self).default_of(field))
        self.__post_init__()

    def __post_init__(self) -> None:
        """Called with all final values in place: check or complete them here."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in type(self).__params__ and not name.startswith("_") and not hasattr(type(self), name):
            declared = type(self).__params__
            raise AttributeError(f"{type(self).__name__} has no parameter {name!r}{did_you_mean(name, declared)}")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in type(self).__params__)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in type(self).__params__)})"

    def replace(self, **changes: Any) -> Self:
        """A deep copy with some values changed; `__post_init__` runs again."""
        values = {name: copy.deepcopy(getattr(self, name)) for name in type(self).__params__ if name not in changes}
        return type(self)(**values, **changes)

    @classmethod
    def hints(cls) -> dict[str, Any]:
        """The type of each field, with the type arguments of generic bases filled in."""
        cached = cls.__dict__.get("__hints__")
        if cached is None:
            cached = cls.__hints__ = _resolve_hints(cls)
        return typing.cast(dict[str, Any], cached)

    @classmethod
    def default_of(cls, field: Field) -> Any:
        """A fresh default value of one field (None where a value is still required)."""
        if field.default is not UNSET:
            return copy.deepcopy(field.default)
        declared = cls.hints()[field.name]
        if not field.required and isinstance(declared, type) and issubclass(declared, Params) and not declared.__abstract__:
            return declared()
        return None

    @classmethod
    def implementation(cls) -> type[Any]:
        """Imports and returns the class these parameters build."""
        if cls.__builds__ is None:
            raise ParamsError(f"{cls.__name__} does not say what it builds; declare it as "
                              f"`class {cls.__name__}(…, builds=\".module:Class\")`.")  # fmt: skip
        module_name, _, class_name = cls.__builds__.partition(":")
        module = importlib.import_module(module_name)
        try:
            return typing.cast(type[Any], getattr(module, class_name))
        except AttributeError:
            raise ParamsError(f"{cls.__name__} builds {cls.__builds__!r}, but {module_name} has no {class_name!r}"
                              f"{did_you_mean(class_name, vars(module))}") from None  # fmt: skip

    def create(self, *args: Any, **kwargs: Any) -> Any:
        """Creates the object these parameters describe: `implementation()(self, …)`."""
        return type(self).implementation()(self, *args, **kwargs)


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """` (did you mean …?)`, or nothing if nothing is close."""
    close = difflib.get_close_matches(word, [option for option in options if not option.startswith("_")], 3, 0.6)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


def subclasses(base: type[T]) -> list[type[T]]:
    """`base` and all classes below it that have been imported, in the order of their definition, each once."""
    found: dict[type[T], None] = {base: None}
    for child in base.__subclasses__():
        found.update(dict.fromkeys(subclasses(child)))
    return list(found)


def short_name(cls: type) -> str:
    """The name a user types: the class name without a trailing "Params"."""
    return cls.__name__.removesuffix("Params") or cls.__name__


def _absolute(builds: str, cls: type) -> str:
    module, _, name = builds.partition(":")
    if not module:
        return f"{cls.__module__}:{name}"
    if not module.startswith("."):
        return builds
    package = sys.modules[cls.__module__].__dict__.get("__package__") or cls.__module__.rpartition(".")[0]
    if not package:
        return f"{module.lstrip('.')}:{name}"  # a plain script: its neighbours are top-level modules
    return f"{importlib.util.resolve_name(module, package)}:{name}"


def _collect(cls: type[Params]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for parent in reversed(cls.__mro__[1:]):
        fields.update(parent.__dict__.get("__params__", {}))
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():
        if name.startswith("_") or "ClassVar" in str(annotation):
            continue
        declared = cls.__dict__.get(name, UNSET)
        field = declared if isinstance(declared, Field) else Field(declared, required=declared is UNSET and not _may_be_params(annotation))
        field.name, field.owner = name, cls
        fields[name] = field
        if name in cls.__dict__:
            delattr(cls, name)
    for name, value in list(cls.__dict__.items()):  # a changed default without repeating the annotation
        if name in fields and not isinstance(value, Callable | classmethod | staticmethod | property):  # type: ignore[arg-type]
            fields[name] = _with_default(fields[name], value, cls)
            delattr(cls, name)
    return fields


def _with_default(field: Field, value: Any, owner: type[Params]) -> Field:
    if isinstance(value, Field):
        changed = copy.copy(value)
    else:
        changed = copy.copy(field)
        changed.default = value
    changed.name, changed.owner = field.name, owner
    return changed


def _may_be_params(annotation: Any) -> bool:
    return isinstance(annotation, str | TypeVar) or (isinstance(annotation, type) and issubclass(annotation, Params))


def _resolve_hints(cls: type[Params]) -> dict[str, Any]:
    bindings = type_bindings(cls)
    hints: dict[str, Any] = {}
    for name, field in cls.__params__.items():
        annotation = field.owner.__dict__.get("__annotations__", {}).get(name)
        if annotation is None:  # only the default was changed there: the annotation stands further up
            annotation, owner = next((p.__dict__["__annotations__"][name], p) for p in field.owner.__mro__ if name in p.__dict__.get("__annotations__", {}))
        else:
            owner = field.owner
        hints[name] = substitute(_evaluate(annotation, owner, name), bindings)
    return hints


def _evaluate(annotation: Any, owner: type[Params], name: str) -> Any:
    if not isinstance(annotation, str):
        return annotation
    names = {**vars(typing), **vars(sys.modules[owner.__module__])} if owner.__module__ in sys.modules else dict(vars(typing))
    try:
        probe = type("_Probe", (), {"__annotations__": {name: annotation}})
        return typing.get_type_hints(probe, names, {**(owner.__local_names__ or {}), owner.__name__: owner}, include_extras=True)[name]
    except NameError as error:
        raise ParamsError(f"{owner.__name__}.{name}: the type {annotation!r} cannot be resolved: {error}. Import the names of parameter "
                          "types at the top of the module (not under `if TYPE_CHECKING`).") from None  # fmt: skip
