"""Declaring what can be set: `Params` and `param()`.

A params class is pure Python: nothing here, and nothing a params module needs, imports numpy, Keras or TensorFlow.
Reading values from files and from the command line lives in the sibling modules.
"""

import copy
import sys
import typing
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self, TypedDict, TypeVar, Unpack, dataclass_transform, overload

from scena.errors import ParamsError, did_you_mean
from scena.params.annotations import evaluate, is_class_variable, names_around, substitute, type_bindings

T = TypeVar("T")


class _Unset:
    """Stands for 'no default was given'; differs from None, which is a value."""

    def __repr__(self) -> str:
        return "UNSET"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


UNSET: Any = _Unset()


class ParamOptions(TypedDict, total=False):
    """The options of `param`."""

    help: str
    required: bool
    hidden: bool
    flat: bool | str
    inline: bool
    choices: Iterable[Any] | None
    aliases: Iterable[str]
    known_as: Iterable[str]
    ge: float | None
    gt: float | None
    le: float | None
    lt: float | None
    affects_results: bool
    backends: Iterable[str]
    one_device: bool
    plugin: str
    positional: str
    common: bool


class Field:
    """One declared parameter of a params class: its default, and the options of `param`."""

    name = help = plugin = positional = ""
    required = hidden = inline = one_device = common = False
    affects_results = True
    flat: bool | str = False
    choices: tuple[Any, ...] | None = None
    aliases: tuple[str, ...] = ()
    known_as: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()

    def __init__(self, default: Any = UNSET, **options: Any) -> None:
        self.owner: type[Params] = Params
        self.default = default
        for name in ("choices", "aliases", "known_as", "backends"):
            if options.get(name) is not None:
                options[name] = (options[name],) if isinstance(options[name], str) else tuple(options[name])
        bounds = {name: options.pop(name, None) for name in ("ge", "gt", "le", "lt")}
        self.bounds: dict[str, float] = {name: bound for name, bound in bounds.items() if bound is not None}
        vars(self).update(options)

    @property
    def root_name(self) -> str:
        """The name of a flat field at the root of the command line."""
        return self.flat if isinstance(self.flat, str) else self.name

    def __repr__(self) -> str:
        return f"<Field {self.owner.__name__}.{self.name}>"


@overload
def param(default: T, **options: Unpack[ParamOptions]) -> T: ...
@overload
def param(**options: Unpack[ParamOptions]) -> Any: ...
def param(default: Any = UNSET, **options: Unpack[ParamOptions]) -> Any:
    """Declares one parameter of a `Params` class.

    Example: `filters: list[int] = param([40, 20], help="filters of each convolution")`

    `default` is the value if none is given. It is copied for each instance, so lists and params instances are safe. A field that holds
    params and has no default starts with an instance of its declared class.

    Options:
        help: what the parameter does, shown by `--help`.
        required: must be given by a file or on the command line.
        hidden: state that is stored with the parameters but is not a flag.
        flat: puts the field at the root of the command line, under its own name or under the name given.
        inline: the fields of this params object take its place: `--lav.batch_size` instead of `--lav.pipeline.batch_size`.
        choices: the values, or params classes, that may be chosen; default: all subclasses of the declared class.
        aliases: other spellings that are accepted, but not shown; one with a dot in it is a whole flag, from the root.
        known_as: what other frameworks call it; not accepted, but errors and `--help WORD` lead from there to here.
        ge, gt, le, lt: bounds of a number, or of each number of a list (`>=`, `>`, `<=`, `<`).
        affects_results: whether weights and history depend on it; if not, a change on resume keeps the run exact.
        backends: the Keras backends that support it (default: all).
        one_device: it works in a training on one device only.
        plugin: the kind of things whose names may be chosen beside `choices`, those of installed plugins (`scena.plugins`).
        positional: in the options of a command: an argument without a flag, and its name in help, such as "FILE". Its aliases are flags.
        common: many users set it, so a long `--help` shows it first.
    """
    known = ParamOptions.__annotations__
    if unknown := min(options.keys() - known.keys(), default=""):
        raise TypeError(f"param() has no option {unknown!r}{did_you_mean(unknown, known)}")
    return Field(default, **options)


_running_post_init = 0  # how many `__post_init__` are on the stack: what they assign is derived, not given


@dataclass_transform(kw_only_default=True)
class Params:
    """Base of everything that can be set. Subclassing it declares a keyword-only record, as a dataclass would be.

    Class keywords:
        builds: where the class lives that these parameters configure: ".model:MyModel" (a module beside this one), ":MyModel"
            (this module) or "package.module:MyModel". It is imported when it is first needed.
        shorthand: the field that a bare value sets, so that `--learning_rate 0.01` means `--learning_rate.lr 0.01`.
        abstract: the class is a base to choose from and cannot be chosen itself.
        name: what a user types to choose the class; default: its name without "Params".
        stands_in_for: a base class; wherever one of its subclasses can be chosen, this class can be chosen instead.
    """

    __params__: ClassVar[dict[str, Field]] = {}
    __builds__: ClassVar[str | None] = None
    __spellings__: ClassVar[str | None] = None
    __shorthand__: ClassVar[str | None] = None
    __short_name__: ClassVar[str] = "Params"
    __abstract__: ClassVar[bool] = True
    __stand_ins__: ClassVar[dict[type["Params"], type["Params"]]] = {}
    __generation__: ClassVar[int] = 0  # grows with each params class, so that lists of classes can be cached until then
    __local_names__: ClassVar[dict[str, Any] | None] = None
    __hints__: ClassVar[dict[str, Any] | None] = None

    def __init_subclass__(cls, builds: str | None = None, shorthand: str | None = None, abstract: bool = False,
                          name: str | None = None, stands_in_for: type["Params"] | None = None,
                          **kwargs: Any) -> None:  # fmt: skip
        super().__init_subclass__(**kwargs)
        Params.__generation__ += 1
        cls.__abstract__ = abstract
        cls.__short_name__ = name or cls.__name__.removesuffix("Params") or cls.__name__
        if stands_in_for is not None:
            Params.__stand_ins__[cls] = stands_in_for
        if builds is not None:
            if ":" not in builds:
                raise TypeError(f'{cls.__name__}: builds={builds!r} must name a module and a class: ".model:MyModel".')
            cls.__builds__ = _absolute(builds, cls)
        cls.__local_names__ = names_around(cls)
        cls.__hints__ = None
        cls.__params__ = _collect(cls)
        if shorthand is not None:
            if shorthand not in cls.__params__:
                known = ", ".join(cls.__params__)
                raise TypeError(f"{cls.__name__}: shorthand={shorthand!r} is not one of its parameters: {known}.")
            cls.__shorthand__ = shorthand

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        declared = cls.__params__
        for name in values:
            if name not in declared:
                raise TypeError(f"{cls.__name__} has no parameter {name!r}{did_you_mean(name, declared)}")
        own = self.__dict__
        complete = True
        for name, field in declared.items():
            value = own[name] = values[name] if name in values else cls.default_of(field)
            if value is None and field.required:
                complete = False
        if complete and cls.__post_init__ is not Params.__post_init__:
            global _running_post_init
            _running_post_init += 1
            try:
                self.__post_init__()
            finally:
                _running_post_init -= 1

    def __post_init__(self) -> None:
        """Called with all final values in place: check them (raise ValueError) or complete them here.

        Complete them by assigning (`self.x = …`, also to nested params). What is assigned here counts as derived: stored parameters
        keep the value that was given, and a change of what it derives from derives it again. Not called while a required value is
        missing.
        """

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if name in type(self).__params__:
            if _running_post_init:
                if name in own:
                    derived = own.setdefault("_derived", {})
                    derived[name] = (derived[name][0] if name in derived else own[name], value)
            elif "_derived" in own:
                own["_derived"].pop(name, None)
        elif not name.startswith("_") and not hasattr(type(self), name):
            hint = did_you_mean(name, type(self).__params__)
            raise AttributeError(f"{type(self).__name__} has no parameter {name!r}{hint}")
        object.__setattr__(self, name, value)

    def given(self, name: str) -> Any:
        """The value of a parameter as it was given, before `__post_init__` derived another one from it."""
        value = self.__dict__[name]
        before, after = self.__dict__.get("_derived", {}).get(name, (value, value))
        return before if value is after else value

    def __eq__(self, other: object) -> bool:
        names = type(self).__params__
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = memo[id(self)] = object.__new__(type(self))
        new.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return new

    def __repr__(self) -> str:
        """The values that differ from the defaults."""
        cls = type(self)
        values = {name: (getattr(self, name), field) for name, field in cls.__params__.items()}
        shown = (n for n, (value, field) in values.items() if _complete_repr or _differ(value, cls.default_of(field)))
        return f"{cls.__name__}({', '.join(f'{name}={values[name][0]!r}' for name in shown)})"

    def _repr_html_(self) -> str:
        """A table for notebooks: all values, with their help."""
        from scena.display import html_table

        rows = [(name, repr(getattr(self, name)), field.help) for name, field in type(self).__params__.items()]
        return html_table(rows, ("parameter", "value", "help"), type(self).__name__)

    def replace(self, **changes: Any) -> Self:
        """A deep copy with some values changed; `__post_init__` runs again."""
        values = {name: copy.deepcopy(self.given(name)) for name in type(self).__params__ if name not in changes}
        return type(self)(**values, **changes)

    @classmethod
    def hints(cls) -> dict[str, Any]:
        """The type of each field, with the type arguments of generic bases filled in."""
        cached = cls.__dict__.get("__hints__")
        if cached is None:
            cached = cls.__hints__ = resolve_hints(cls)
        return typing.cast(dict[str, Any], cached)

    @classmethod
    def default_of(cls, field: Field) -> Any:
        """A fresh default value of one field (None where a value is still required)."""
        default = field.default
        if default is not UNSET:
            return default if default is None or default.__class__ in _IMMUTABLE else copy.deepcopy(default)
        return None if field.required else _instance(cls.hints()[field.name])

    @classmethod
    def __initial__(cls) -> Self:
        """The values that the class starts with where it is chosen; a base may take them from elsewhere."""
        return cls()

    @classmethod
    def implementation(cls) -> type[Any]:
        """Imports and returns the class these parameters build."""
        if cls.__builds__ is None:
            name = cls.__name__
            raise ParamsError(f'{name} does not say what it builds: `class {name}(…, builds=".module:Class")`.')
        import importlib

        module_name, _, class_name = cls.__builds__.partition(":")
        module = importlib.import_module(module_name)
        try:
            return typing.cast(type[Any], getattr(module, class_name))
        except AttributeError:
            hint = did_you_mean(class_name, vars(module))
            raise ParamsError(
                f"{cls.__name__} builds {cls.__builds__!r}, but {module_name} has no {class_name!r}{hint}"
            ) from None

    def create(self, *args: Any, **kwargs: Any) -> Any:
        """Creates the object these parameters describe: `implementation()(self, …)`."""
        return type(self).implementation()(self, *args, **kwargs)


_complete_repr = False


class FlagValue:
    """A value that a flag has as one word, such as `200steps`. Two are equal if their words are. (A dataclass would cost `--help` 10 %.)"""

    __slots__ = ()

    def to_param(self) -> int | str:
        """The text of a flag."""
        raise NotImplementedError(f"{type(self).__name__} has no to_param")

    def __eq__(self, other: object) -> bool:
        return self.to_param() == other.to_param() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_param())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_param()!r})"


def _differ(one: Any, other: Any) -> bool:
    try:
        return bool(one != other)
    except (TypeError, ValueError):  # arrays
        return True


def complete_repr(params: Params) -> str:
    """All values of some params and of those inside them, defaults too: what identifies them."""
    global _complete_repr
    before, _complete_repr = _complete_repr, True
    try:
        return repr(params)
    finally:
        _complete_repr = before


_IMMUTABLE = frozenset({bool, int, float, str})


def subclasses(base: type[T]) -> list[type[T]]:
    """`base` and all classes below it that have been imported, in the order of their definition, each once."""
    found: dict[type[T], None] = {base: None}
    for child in base.__subclasses__():
        found.update(dict.fromkeys(subclasses(child)))
    return list(found)


def short_name(cls: type[Params]) -> str:
    return cls.__short_name__


def resolve_hints(cls: type[Params], arguments: tuple[Any, ...] = ()) -> dict[str, Any]:
    """The type of each field of `cls`, or of `cls[arguments]`."""
    given = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    hints: dict[str, Any] = {}
    for name, field in cls.__params__.items():
        owner = next(parent for parent in field.owner.__mro__ if name in parent.__dict__.get("__annotations__", {}))
        hint = evaluate(owner.__dict__["__annotations__"][name], owner, name)
        if getattr(hint, "__parameters__", ()) or isinstance(hint, TypeVar):
            bindings = type_bindings(cls, owner) if owner is not cls else {}
            if given:  # a TypeVar that is passed on to a base stands for the argument
                passed = {var: given.get(to, to) if isinstance(to, TypeVar) else to for var, to in bindings.items()}
                bindings = {**given, **passed}
            hint = substitute(hint, bindings)
        hints[name] = hint
    return hints


def _instance(hint: Any) -> Any:
    """A default instance where `hint` is a params class that can be built, else None."""
    origin = typing.get_origin(hint) or hint
    if not (isinstance(origin, type) and issubclass(origin, Params)) or origin.__abstract__:
        return None
    if origin is hint:
        return origin()
    # `data: BaseParams[MyData]`: the class does not know its arguments, so the fields that depend on them are made here
    bound = resolve_hints(origin, typing.get_args(hint))
    own = origin.hints()
    unset = (name for name, field in origin.__params__.items() if field.default is UNSET and not field.required)
    return origin(**{name: _instance(bound[name]) for name in unset if bound[name] != own[name]})


def _absolute(builds: str, cls: type) -> str:
    module, _, name = builds.partition(":")
    if not module:
        return f"{cls.__module__}:{name}"
    if not module.startswith("."):
        return builds
    package = sys.modules[cls.__module__].__dict__.get("__package__") or cls.__module__.rpartition(".")[0]
    relative = module.lstrip(".")
    parts = package.split(".") if package else []  # a plain script has no package: its neighbours are top-level modules
    parents = len(module) - len(relative) - 1
    if parents and parents >= len(parts):
        raise TypeError(f"{cls.__name__}: builds={builds!r} goes beyond the top-level package of {cls.__module__}.")
    return f"{'.'.join([*parts[: len(parts) - parents], relative])}:{name}"


def _collect(cls: type[Params]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for parent in reversed(cls.__mro__[1:]):
        declared: dict[str, Field] = parent.__dict__.get("__params__", {})
        fields.update({name: field for name, field in declared.items() if field.owner is parent})
    for name, annotation in cls.__dict__.get("__annotations__", {}).items():
        if name.startswith("_") or is_class_variable(annotation):
            continue
        if hasattr(Params, name):
            raise TypeError(
                f"{cls.__name__}.{name}: every Params class has a method {name}(); choose another name for the parameter."
            )
        fields[name] = _named(cls.__dict__.get(name, UNSET), name, annotation, cls)
        if name in cls.__dict__:
            delattr(cls, name)
    for name, value in list(cls.__dict__.items()):  # a changed default without repeating the annotation
        if name in fields:
            if isinstance(value, Callable | classmethod | staticmethod | property) and not isinstance(value, Params):  # type: ignore[arg-type]
                owner = fields[name].owner.__name__
                raise TypeError(f"{cls.__name__}.{name} would hide the parameter {name!r} of {owner}; rename it.")
            fields[name] = _with_default(fields[name], value, cls)
            delattr(cls, name)
        elif isinstance(value, Field):
            raise TypeError(f"{cls.__name__}.{name} = param(…) needs a type: `{name}: int = param(…)`.")
    return fields


def _named(declared: Any, name: str, annotation: Any, cls: type[Params]) -> Field:
    # one Field may be shared by several classes
    field = copy.copy(declared) if isinstance(declared, Field) else Field(declared)
    if field.default is UNSET and not field.required:
        field.required = not _may_be_params(annotation, cls, name)
    field.name, field.owner = name, cls
    return field


def _with_default(field: Field, value: Any, owner: type[Params]) -> Field:
    if isinstance(value, Field):
        changed = copy.copy(value)
    else:
        changed = copy.copy(field)
        changed.default, changed.required = value, False
    changed.name, changed.owner = field.name, owner
    return changed


def _may_be_params(annotation: Any, cls: type[Params], name: str) -> bool:
    """Whether a field without a default can start with an instance of its class; a name defined further down counts as one."""
    if isinstance(annotation, str):
        try:
            annotation = evaluate(annotation, cls, name)
        except ParamsError:
            return True
    origin = typing.get_origin(annotation) or annotation
    return isinstance(origin, TypeVar) or (isinstance(origin, type) and issubclass(origin, Params))
