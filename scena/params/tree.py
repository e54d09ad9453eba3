"""The raw tree: a params object as plain, JSON-able data, and back.

In a raw tree each params object is a dict with its class name under the key `class`. Defaults, files and the command line are all
brought into this form and merged (files/overlay.py); `build` is the single place that checks values and makes params objects of them.
"""

import operator
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from scena.errors import ParamsError, did_you_mean
from scena.params.convert import Mismatch, convert, describe, leaf_to_raw, shown
from scena.params.declare import UNSET, Field, Params
from scena.params.kinds import CLASS, Kind, class_of, kind_of, name_of, named_choices, unknown_class
from scena.params.settable import Path, Where

P = TypeVar("P", bound=Params)


def to_raw(params: Params) -> dict[str, Any]:
    """A params object as JSON-able data, as it was given: what `__post_init__` derived is derived again by `build`."""
    return _object_to_raw(params, kind_of(type(params)), None)


def _object_to_raw(params: Params, kind: Kind, field: Field | None) -> dict[str, Any]:
    cls = type(params)
    hints = kind.hints_of(cls)
    raw: dict[str, Any] = {CLASS: name_of(cls, kind, field)}
    for name, own in cls.__params__.items():
        raw[name] = value_to_raw(params.given(name), hints[name], own)
    return raw


def value_to_raw(value: Any, hint: Any, field: Field | None) -> Any:
    """One field's value as JSON-able data."""
    kind = kind_of(hint)
    owner = f"{field.owner.__name__}.{field.name}" if field is not None else "value"
    if kind.form == "leaf" or value is None:
        try:
            return leaf_to_raw(value, hint)
        except ParamsError as error:
            raise ParamsError(f"{owner}: expected {_expected(kind)}. {error}") from None
    if kind.form == "params" and isinstance(value, Params):
        return _object_to_raw(value, kind, field)
    if kind.form == "list" and isinstance(value, list | tuple) and all(isinstance(item, Params) for item in value):
        return [_object_to_raw(item, kind, field) for item in value]
    if kind.form == "dict" and isinstance(value, dict) and all(isinstance(item, Params) for item in value.values()):
        return {name: _object_to_raw(item, kind, field) for name, item in value.items()}
    raise ParamsError(f"{owner}: expected {_expected(kind)}, received {shown(value)}")


def default_raw(cls: type[Params], kind: Kind | None = None, field: Field | None = None) -> dict[str, Any]:
    """The raw tree of a class before anything is set; values that are still required are None."""
    kind = kind or kind_of(cls)
    if cls.__initial__.__func__ is not Params.__initial__.__func__:  # type: ignore[attr-defined]
        return _object_to_raw(cls.__initial__(), kind, field)
    hints = kind.hints_of(cls)
    raw: dict[str, Any] = {CLASS: name_of(cls, kind, field)}
    for name, own in cls.__params__.items():
        raw[name] = _default_value(own, hints[name])
    return raw


def _default_value(field: Field, hint: Any) -> Any:
    if field.default is not UNSET:
        return value_to_raw(field.default, hint, field)
    kind = kind_of(hint)
    if kind.form != "params" or field.required or kind.optional or len(kind.bases) != 1 or kind.bases[0].__abstract__:
        return None
    return default_raw(kind.bases[0], kind, field)


def build(raw: Mapping[str, Any], cls: type[P], *, where: Where | None = None, partial: bool = False) -> P:
    """Checks a raw tree and makes the params object of it. Raises one ParamsError that lists everything that is wrong.

    Args:
        raw: the tree; a missing field gets its default.
        cls: the class of the root, or a base of it.
        where: how errors name a parameter (parse() uses `--flag`, or file and line); default: its dotted path.
        partial: required values may be missing; they are None then.
    """
    builder = _Builder(where or Where(), partial=partial)
    params = builder.object(raw, kind_of(cls), None, ())
    if builder.errors:
        raise ParamsError("\n".join(builder.errors))
    assert isinstance(params, cls)
    return params


class _Builder:
    """One pass of `build`: collects errors and continues, so that a user sees all of them at once."""

    def __init__(self, where: Where, *, typed: bool = False, partial: bool = False) -> None:
        self.where = where
        self.partial = partial
        self.typed = typed  # the values come from Python, where a text is no number
        self.errors: list[str] = []

    def fail(self, path: Path, message: str) -> None:
        self.errors.append(self.where.error(path, message))

    def object(self, raw: Any, kind: Kind, field: Field | None, path: Path) -> Params | None:
        if not isinstance(raw, Mapping):
            self.fail(path, f"expected {_expected(kind)}, received {shown(raw)}")
            return None
        try:
            cls = class_of(raw, kind, field)
        except ParamsError as error:
            self.fail(path, str(error))
            return None
        if cls is None:
            missing = f"the class is missing: expected {_expected(kind)}"
            self.fail(path, unknown_class(raw[CLASS], kind, field) if CLASS in raw else missing)
            return None
        before = len(self.errors)
        for key in map(str, raw):
            if key not in cls.__params__ and key != CLASS:
                hint = did_you_mean(key, cls.__params__)
                self.fail((*path, key), f"{cls.__name__} has no parameter {key!r}{hint}")
        hints = kind.hints_of(cls)
        values = {}
        for name, own in cls.__params__.items():
            value = raw[name] if name in raw else _default_value(own, hints[name])
            values[name] = self.value(value, hints[name], own, (*path, name))
        if len(self.errors) > before:
            return None
        try:
            return cls(**values)
        except ValueError as error:  # raised by __post_init__
            inline = field is not None and field.inline  # its own name is no flag
            self.fail(path[:-1] if inline else path, str(error))
            return None
        except Exception as error:
            from scena.user_code import reason, user_line  # late: a mistake in a class, not in a value

            place = user_line(error)
            self.fail(path, f"{cls.__name__}.__post_init__ failed: {reason(error)}{f', in {place}' if place else ''}")
            return None

    def value(self, raw: Any, hint: Any, field: Field, path: Path) -> Any:
        kind = kind_of(hint)
        if raw is None:
            anything = kind.form == "leaf" and kind.hint is Any
            if (field.required and not self.partial) or not (field.required or kind.optional or anything):
                told = f": {field.help}" if field.help else ""
                missing = f"is required{told} (expected {_expected(kind)})"
                wrong = f"expected {_expected(kind)}, received None"
                self.fail(path, missing if field.required or field.default is UNSET else wrong)
            return None
        if kind.form == "leaf":
            return self.leaf(raw, hint, field, path)
        if kind.form == "params":
            return self.object(raw, kind, field, path)
        if kind.form == "list" and isinstance(raw, list):
            return kind.container([self.object(item, kind, field, (*path, index)) for index, item in enumerate(raw)])
        if kind.form == "dict" and isinstance(raw, dict):
            return {name: self.object(item, kind, field, (*path, name)) for name, item in raw.items()}
        self.fail(path, f"expected {_expected(kind)}, received {shown(raw)}")
        return None

    def leaf(self, raw: Any, hint: Any, field: Field, path: Path) -> Any:
        try:
            value = convert(raw, hint)
            if self.typed and _was_read(raw, value):
                raise Mismatch(_expected(kind_of(hint)), raw)
        except Mismatch as mismatch:
            self.fail(path, str(mismatch))
            return None
        for item in _items(value):
            if field.bounds and isinstance(item, int | float) and abs(item) > _LARGEST[isinstance(item, int)]:
                self.fail(path, f"is too large: {shown(item)}")
                return value
            for name, bound in field.bounds.items():
                if isinstance(item, int | float) and not getattr(operator, name)(item, bound):
                    self.fail(path, f"must be {_SIGNS[name]} {bound}, received {shown(item)}")
                    return value
            if field.choices is None or item is None or item in field.choices:
                continue
            if item not in (allowed := named_choices(field) or []):
                options = [str(leaf_to_raw(choice)) for choice in allowed]
                received = f"{shown(leaf_to_raw(item))}{did_you_mean(str(item), options)}"
                self.fail(path, f"expected one of {', '.join(options)}, received {received}")
                return value
        return value


_LARGEST = (sys.float_info.max, 2**63 - 1)
"""What arrays, counters and TensorFlow can hold; a parameter with bounds is never larger."""
_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


def _items(value: Any) -> list[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        return [inner for item in value for inner in _items(item)]
    return [inner for item in value.values() for inner in _items(item)] if isinstance(value, dict) else [value]


def _expected(kind: Kind) -> str:
    what = describe(kind.hint) if kind.form == "leaf" else kind.expected()
    form = {"list": f"a list of {what}", "dict": f"a mapping of names to {what}"}.get(kind.form, what)
    return form + (" or None" if kind.optional else "")


def check(params: P) -> P:
    """Checks a params object made in Python as `build` would: types, bounds, choices, required values, `__post_init__`.

    A value that is right in another form is replaced by its declared form in place (a text for a path, a list for a tuple), and
    `__post_init__` derives its values again. Unlike on a command line, a text for a number is an error.

    Returns:
        The same object.
    """
    builder = _Builder(Where(), typed=True)
    checked = builder.object(to_raw(params), kind_of(type(params)), None, ())
    if checked is None or builder.errors:
        raise ParamsError("\n".join(builder.errors))
    _adopt(params, checked)
    return params


def _was_read(raw: Any, value: Any) -> bool:
    """Whether a number, a bool or None was read from a text, or one of them from another."""
    if isinstance(raw, list) and isinstance(value, list | tuple):
        return any(map(_was_read, raw, value))
    if isinstance(raw, dict) and isinstance(value, dict):
        return any(map(_was_read, raw.values(), value.values()))
    if isinstance(raw, str):
        not_finite = isinstance(value, float) and value - value != 0  # `to_raw` writes these as texts
        return value.__class__ in (bool, int, float, type(None)) and not not_finite
    return (raw.__class__ is bool) != (value.__class__ is bool) and value.__class__ in (bool, int, float)


def _adopt(params: Any, checked: Any) -> Any:
    """Gives `params` the values of `checked`; returns what stands for it. Objects stay the same where their class does."""
    if isinstance(params, Params) and type(params) is type(checked):
        own, new = params.__dict__, checked.__dict__
        hints = type(params).hints()
        own.pop("_derived", None)
        derived = new.get("_derived", {})
        for name in type(params).__params__:
            if name in derived or kind_of(hints[name]).hint is not Any:
                own[name] = _adopt(own[name], new[name])
        if derived:
            own["_derived"] = derived
        return params
    if isinstance(params, list) and isinstance(checked, list) and len(params) == len(checked):
        params[:] = map(_adopt, params, checked)
        return params
    if isinstance(params, dict) and isinstance(checked, dict) and list(params) == list(checked):
        params.update({name: _adopt(params[name], checked[name]) for name in params})
        return params
    return checked


def values_in(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """A params object and everything in it, each with its path: other params objects, entries of dicts, items of lists."""
    yield path, tree
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(tree, Params):
        items = ((name, getattr(tree, name)) for name in type(tree).__params__)
    elif isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list | tuple):
        items = enumerate(tree)
    for key, value in items:
        yield from values_in(value, (*path, key))


def changed_flags(params: Params, prefix: str) -> Iterator[tuple[str, Field]]:
    """Each parameter of a tree that differs from its default: its flag, below `prefix` ("trainer"), and its declaration."""
    for name, field in type(params).__params__.items():
        value = getattr(params, name)
        flag = field.root_name if field.flat else f"{prefix}.{name}"
        if isinstance(value, Params):
            yield from changed_flags(value, prefix if field.inline else flag)
        elif value != type(params).default_of(field):
            yield f"--{flag}", field


def affects_results(params: Params, path: str) -> bool:
    """Whether results depend on the parameter at a dotted path of field names; what cannot be found counts as yes."""
    part: object = params
    for name in path.split("."):
        field = type(part).__params__.get(name) if isinstance(part, Params) else None
        if field is None:
            return True
        if not field.affects_results:
            return False
        part = getattr(part, name)
    return True
