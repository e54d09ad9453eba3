"""A JSON schema (draft 2020-12) of the files that a tree reads, so that editors complete and check them.

It knows every class that can be chosen. It is a little more generous than `build`: which class a mapping without `class` means
depends on what the file is laid over, so the fields of each class that can stand there are accepted.
"""

import enum
import os
import typing
from typing import Any, Literal

from scena.errors import ParamsError
from scena.params.convert import leaf_to_raw
from scena.params.declare import UNSET, Field, Params, short_name
from scena.params.files.files import EXTENDS
from scena.params.kinds import CLASS, Kind, candidates, full_name, kind_of, named_choices, peel
from scena.params.tree import value_to_raw

Schema = dict[str, Any]
Place = tuple[Kind, Any, Field]


def json_schema(tree: Params | type[Params], title: str = "") -> Schema:
    """The schema of a file of parameters for `tree`, a params object or class: its own names at the top, or named sets."""
    cls = tree if isinstance(tree, type) else type(tree)
    maker = _Maker()
    root = maker.root_properties(cls)
    extends = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    in_file = {EXTENDS: {**extends, "description": "the file, or FILE:SET, this one is laid over"}, **root}
    in_set = {EXTENDS: {**extends, "description": "the set, or sets, this one is laid over"}, **root}
    maker.definitions["parameters"] = _mapping(in_file)
    maker.definitions["set"] = {**_mapping(in_set), "type": ["object", "null"]}
    sets = {
        "type": "object",
        "description": "named sets, chosen with --config_set",
        "propertyNames": {"not": {"enum": list(root)}},
        "additionalProperties": {"$ref": "#/$defs/set"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title or short_name(cls),
        "anyOf": [{"$ref": "#/$defs/parameters"}, sets, {"type": "null"}],
        "$defs": maker.definitions,
    }


class _Maker:
    """Collects one definition for each class that can be chosen anywhere."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self.names: dict[Any, str] = {}
        self.dotted: dict[str, list[Schema]] = {}
        """What aliases with dots may be set to: each is a path from the root, wherever its field is."""

    def root_properties(self, cls: type[Params]) -> dict[str, Schema]:
        """The names at the top of a file: the fields of the root, and every flat field below it."""
        found: dict[str, list[Place]] = {}
        self._flat_fields(cls, kind_of(cls), found, set())
        properties = self.properties(cls, kind_of(cls))
        for name, places in found.items():
            schemas = [self.value(kind, hint, field) for kind, hint, field in places]
            if name in properties:
                schemas.append(properties[name])
            distinct = _distinct(schemas)
            shared = len(distinct) > 1 and all(kind.form == "params" for kind, _, _ in places)
            properties[name] = self._shared(places) if shared else _any_of(distinct)
        for alias, schemas in self.dotted.items():
            self._insert(properties, alias.split("."), _any_of(_distinct(schemas)))
        return properties

    def _flat_fields(self, cls: type[Params], kind: Kind, found: dict[str, list[Place]], seen: set[type]) -> None:
        if cls in seen:
            return
        seen.add(cls)
        hints = kind.hints_of(cls)
        for name, field in cls.__params__.items():
            inner = kind_of(hints[name])
            if field.flat:
                for own in (field.root_name, *_plain_aliases(field)):
                    found.setdefault(own, []).append((inner, hints[name], field))
            for alias in field.aliases:
                if "." in alias:
                    self.dotted.setdefault(alias, []).append(self.value(inner, hints[name], field))
            if inner.form == "params":
                for option in _options(inner, field).values():
                    self._flat_fields(option, inner, found, seen)

    def _shared(self, places: list[Place]) -> Schema:
        """Several params objects under one name: one mapping may set the fields of all of them."""
        names: list[str] = []
        properties: dict[str, list[Schema]] = {}
        optional = any(kind.optional for kind, _, _ in places)
        for kind, _, field in places:
            for option, cls in _options(kind, field).items():
                names.append(option)
                for name, one in self.properties(cls, kind).items():
                    properties.setdefault(name, []).append(one)
        merged = {name: _any_of(_distinct(schemas)) for name, schemas in properties.items()}
        merged[CLASS] = {"enum": sorted(set(names))}
        return _any_of([{"enum": sorted(set(names))}, _mapping(merged), *([{"type": "null"}] if optional else [])])

    def properties(self, cls: type[Params], kind: Kind) -> dict[str, Schema]:
        """What a mapping for `cls` may hold."""
        hints = kind.hints_of(cls)
        found: dict[str, Schema] = {CLASS: {"type": "string"}}
        for name, field in cls.__params__.items():
            inner = kind_of(hints[name])
            own = self.value(inner, hints[name], field)
            for spelling in (name, *_plain_aliases(field)):
                found[spelling] = own
            if field.inline and inner.form == "params":
                for option in _options(inner, field).values():
                    for below, one in self.properties(option, inner).items():
                        found.setdefault(below, one)
        return found

    def value(self, kind: Kind, hint: Any, field: Field) -> Schema:
        """What one field may hold, with its help and default."""
        if kind.form == "leaf":
            own = _leaf(hint, field)
        elif kind.form == "params":
            own = self.object(kind, field)
        else:
            item = self.object(kind, field)
            by_name = {"type": "object", "additionalProperties": {"anyOf": [item, {"type": "null"}]}}
            forms = [by_name] if kind.form == "dict" else [{"type": "array", "items": item}, by_name]
            own = _any_of(forms + [{"type": "null"}] * kind.optional)
        if field.help:
            own = {**own, "description": field.help}
        if field.default is not UNSET:
            own = {**own, "default": value_to_raw(field.default, hint, field)}
        return own

    def object(self, kind: Kind, field: Field) -> Schema:
        options = _options(kind, field)
        names = sorted({spelling for name, cls in options.items() for spelling in (name, cls.__name__)})
        forms: list[Schema] = [{"enum": names}] if names else []
        for name, cls in options.items():
            forms.append({"$ref": f"#/$defs/{self.define(name, cls, kind)}"})
        shorthands = {cls.__shorthand__: cls for cls in options.values() if cls.__shorthand__ is not None}
        for shorthand, cls in shorthands.items():
            forms.append(_leaf(kind.hints_of(cls)[shorthand], cls.__params__[shorthand]))
        if kind.optional and kind.form == "params":
            forms.append({"type": "null"})
        return _any_of(forms)

    def _insert(self, properties: dict[str, Schema], names: list[str], own: Schema) -> None:
        """Adds an alias with dots; a mapping on its way may be there already, for a field or for another alias."""
        first, *rest = names
        if not rest:
            properties.setdefault(first, own)
            return
        for mapping in self._mappings(properties.setdefault(first, _mapping({}))):
            self._insert(mapping["properties"], rest, own)

    def _mappings(self, schema: Schema) -> list[Schema]:
        """The mappings among what a schema accepts."""
        if "$ref" in schema:
            schema = self.definitions[schema["$ref"].rpartition("/")[2]]
        if "anyOf" in schema:
            return [mapping for one in schema["anyOf"] for mapping in self._mappings(one)]
        return [schema] if "properties" in schema else []

    def define(self, name: str, cls: type[Params], kind: Kind) -> str:
        """Makes the definition of a class, once; returns its name."""
        key = (cls, str(kind.aliases.get(cls)))
        if key in self.names:
            return self.names[key]
        taken = {*self.names.values(), "parameters", "set"}
        own = name if name not in taken else full_name(cls)
        while own in taken:
            own += "_"
        self.names[key] = own
        properties = self.properties(cls, kind)
        properties[CLASS] = {"enum": sorted({name, cls.__name__, full_name(cls)})}
        definition = _mapping(properties)
        if cls.__doc__:
            definition["description"] = " ".join(cls.__doc__.split())
        self.definitions[own] = definition
        return own


def _options(kind: Kind, field: Field | None) -> dict[str, type[Params]]:
    options = dict(candidates(kind, field))
    default = field.default if field is not None else None
    if isinstance(default, Params) and type(default) not in options.values():
        options[short_name(type(default))] = type(default)
    return options


def _plain_aliases(field: Field) -> list[str]:
    return [alias for alias in field.aliases if "." not in alias]


def _mapping(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _distinct(schemas: list[Schema]) -> list[Schema]:
    return list({str(one): one for one in schemas}.values())


def _any_of(forms: list[Schema]) -> Schema:
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


_TYPES: dict[Any, Schema] = {
    bool: {"enum": [True, False, "yes", "no", "on", "off"]},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    Any: {},
    object: {},
}
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def _leaf(hint: Any, field: Field) -> Schema:
    alternatives, optional = peel(hint)
    if (choices := named_choices(field)) is not None:
        allowed: Schema = {"enum": [leaf_to_raw(choice) for choice in choices]}
        many = any((typing.get_origin(one) or one) in (list, set, frozenset, tuple) for one in alternatives)
        forms = [{"type": "array", "items": allowed}] if many else [allowed]
    else:
        bounds = {_BOUNDS[name]: bound for name, bound in field.bounds.items()}
        forms = [_one(alternative, bounds) for alternative in alternatives]
    return _any_of(forms + [{"type": "null"}] * optional)


def _one(hint: Any, bounds: Schema) -> Schema:
    if hint in _TYPES:
        return {**_TYPES[hint], **bounds} if hint in (int, float) else dict(_TYPES[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    kind = origin or hint
    if kind is Literal:
        return {"enum": list(arguments)}
    if kind in (list, set, frozenset) or (kind is tuple and (not arguments or arguments[-1] is ...)):
        return {"type": "array", "items": _hint(arguments[0], bounds) if arguments else {}}
    if kind is tuple:
        items = [_hint(argument, bounds) for argument in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if kind is dict:
        item = _hint(arguments[1], bounds) if arguments else {}
        return {"type": "object", "additionalProperties": {"anyOf": [item, {"type": "null"}]}}
    if not isinstance(kind, type):
        raise ParamsError(f"The type {hint!r} cannot be a parameter.")
    if issubclass(kind, enum.Enum) and not hasattr(kind, "from_param"):
        return {"enum": list(dict.fromkeys([*(leaf_to_raw(member) for member in kind), *kind.__members__]))}
    return {"type": "string"} if issubclass(kind, os.PathLike) and not hasattr(kind, "from_param") else {}


def _hint(hint: Any, bounds: Schema) -> Schema:
    alternatives, optional = peel(hint)
    return _any_of([_one(alternative, bounds) for alternative in alternatives] + [{"type": "null"}] * optional)
