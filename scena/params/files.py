"""Files of parameters, and the named sets they may hold.

A file holds either parameters, under the names of the command line, or sets of them. It holds sets if none of its
top-level
keys is a parameter, or if the set that was asked for is one of its keys; each top-level key is then the name of a set.
A set may inherit: `<<: *ANCHOR` copies the keys of another mapping, `extends: other` lays this set over the other one.
"""

import os
from typing import Any, TypeVar

from scena.params.declare import Params
from scena.params.errors import ParamsError
from scena.params.layers import Section, entries_of, merge_into
from scena.params.nodes import Index
from scena.params.origins import Origins
from scena.params.selection import CLASS
from scena.params.spelling import did_you_mean
from scena.params.tree import build, to_raw
from scena.params.yaml_reader import read

P = TypeVar("P", bound=Params)

EXTENDS = "extends"
DEFAULT_SET = "default"


def load(default: P, paths: list[str | os.PathLike[str]], config_set: str | None = None) -> P:
    """`default` with the values of files laid over it; the later file wins. From Python what `--config` is for a
    command.
    """
    tree = Origins(to_raw(default), type(default))
    lay_files(tree, [os.fspath(path) for path in paths], config_set)
    return build(tree.raw, type(default), where=tree)


def lay_files(tree: Origins, paths: list[str], config_set: str | None) -> None:
    """Lays the parameters of files over a tree."""
    documents = [(path, _document(path)) for path in paths]
    if config_set is not None and not any(config_set in document for _, document in documents):
        known = _top_level(tree)
        names = [name for _, document in documents if not known & document.keys() for name in document]
        what = ", ".join(paths)
        raise ParamsError(
            f"{what}: there is no set {config_set!r}{did_you_mean(config_set, names)}; there are: {', '.join(names) or 'none'}"
        )
    for path, document in documents:
        for layer in layers(path, document, config_set, tree):
            merge_into(tree, entries_of(layer, path))


def _document(path: str) -> Section:
    document = read(path)
    if document is None:
        return Section()
    if not isinstance(document, Section):
        what = "a list" if isinstance(document, list) else "a single value"
        raise ParamsError(f"{path}: expected names and values (`trainer: …`), but the file is {what}")
    return document


def layers(path: str, document: Section, config_set: str | None, tree: Origins) -> list[Section]:
    """What a file lays over the tree, in this order: the file itself, or a set after those it extends."""
    if not document:
        return []
    if config_set is not None and config_set in document:
        return _chain(path, document, config_set, ())
    if EXTENDS in document:
        raise ParamsError(
            f"{document.origins[EXTENDS]}: `{EXTENDS}` belongs into a set, and this file holds parameters"
        )
    known = _top_level(tree)
    if any(key in known for key in document) or document.keys() <= {CLASS}:
        return [document]
    if DEFAULT_SET in document:
        return _chain(path, document, DEFAULT_SET, ())
    return _neither(path, document, known)


def _neither(path: str, document: Section, known: set[str]) -> list[Section]:
    names = ", ".join(document)
    first = next(iter(document))
    hint = did_you_mean(first, known)
    if hint or not all(isinstance(value, dict) for value in document.values()):
        raise ParamsError(f"{document.origins[first]}: {first} does not exist{hint}")
    raise ParamsError(
        f"{path}: no key at its top level is a parameter, so its keys are names of sets: choose one with --config_set, one of {names}"
    )


def _top_level(tree: Origins) -> set[str]:
    return {name.partition(".")[0] for name in Index(tree.raw, tree.cls).by_name}


def _chain(path: str, document: Section, name: str, children: tuple[str, ...]) -> list[Section]:
    """A set, after the sets that it extends."""
    content = document[name]
    if name in children:
        circle = " -> ".join([*children[children.index(name) :], name])
        raise ParamsError(f"{document.origins[name]}: the sets extend each other in a circle: {circle}")
    if content is None:
        return []
    if not isinstance(content, Section):
        raise ParamsError(f"{document.origins[name]}: the set {name!r} must hold names and values")
    found: list[Section] = []
    for parent in _parents(content, name):
        if parent not in document:
            raise ParamsError(
                f"{content.origins[EXTENDS]}: the set {name!r} extends {parent!r}, which does not exist"
                f"{did_you_mean(str(parent), document)}; there are: {', '.join(document)}"
            )
        found += [layer for layer in _chain(path, document, parent, (*children, name)) if layer not in found]
    return [*found, _labelled(content, name)]


def _parents(content: Section, name: str) -> list[str]:
    parents = content.get(EXTENDS)
    parents = [] if parents is None else parents if isinstance(parents, list) else [parents]
    if not all(isinstance(parent, str) for parent in parents):
        raise ParamsError(
            f"{content.origins[EXTENDS]}: `{EXTENDS}` of the set {name!r} expects the name of a set, or a list of names"
        )
    return parents


def _labelled(value: Any, name: str) -> Any:
    """A copy in which each origin also says the set: `runs.yaml:12 (set big)`."""
    if isinstance(value, Section):
        return Section(
            {key: _labelled(item, name) for key, item in value.items() if key != EXTENDS},
            {key: f"{origin} (set {name})" for key, origin in value.origins.items()},
        )
    return [_labelled(item, name) for item in value] if isinstance(value, list) else value
