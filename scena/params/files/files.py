"""Files of parameters, and the named sets they may hold.

A file holds either parameters, under the names of the command line, or sets of them. It holds sets if none of its
top-level keys is a parameter, or if the set that was asked for is one of its keys; each top-level key is then the name
of a set. A set may inherit: `<<: *ANCHOR` copies the keys of another mapping, `extends: other` lays this set over another
one, of this file or (`extends: FILE:SET`) of a file whose path is relative to this one.
"""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from scena.errors import ParamsError, did_you_mean
from scena.params.declare import Params
from scena.params.files.entries import Section, entries_of, nest_instead, spellings_of
from scena.params.files.overlay import merge_into
from scena.params.files.yaml_reader import read
from scena.params.kinds import CLASS
from scena.params.settable import Index, Origins
from scena.params.tree import build, to_raw

P = TypeVar("P", bound=Params)

EXTENDS = "extends"
DEFAULT_SET = "default"
ENDINGS = (".yaml", ".yml", ".json")


class Source(NamedTuple):
    """A file, and the set of it that was asked for, if any."""

    path: str
    set: str | None = None

    def __str__(self) -> str:
        return self.path if self.set is None else f"{self.path}:{self.set}"


def load(default: P, paths: list[str | os.PathLike[str]], config_set: str | None = None) -> P:
    """`default` with the values of files laid over it; the later file wins. What `--config` does for a command."""
    tree = Origins(to_raw(default), type(default))
    lay_files(tree, [os.fspath(path) for path in paths], config_set)
    return build(tree.raw, type(default), where=tree)


def lay_files(tree: Origins, paths: list[str], config_set: str | None) -> None:
    """Lays the parameters of files over a tree; each is `FILE`, or `FILE:SET` for a set of its own."""
    sources = [as_source(path) for path in paths]
    documents = [document_of(source.path) for source in sources]
    if config_set is not None:
        _check_set(config_set, sources, documents, tree)
    known = _top_level(tree)
    for source, document in zip(sources, documents, strict=True):
        if source.set is None and config_set in document:
            source = Source(source.path, config_set)
        for layer in _layers(source, document, known):
            merge_into(tree, entries_of(layer, source.path))


def as_source(text: str) -> Source:
    """`FILE` or `FILE:SET`; a file that exists under the whole text is that file."""
    path, colon, name = text.rpartition(":")
    return Source(path, name) if colon and path and not os.path.exists(text) else Source(text)


def document_of(path: str) -> Section:
    """The content of a file, with the line of each key."""
    if not path:
        raise ParamsError("--config expects files, received ''")
    document = read(path)
    if document is None:
        return Section()
    if not isinstance(document, Section):
        what = "a list" if isinstance(document, list) else "a single value"
        raise ParamsError(f"{path}: expected names and values (`trainer: …`), but the file is {what}")
    return document


def _check_set(config_set: str, sources: list[Source], documents: list[Section], tree: Origins) -> None:
    """Some file that does not name its own set must have the set."""
    open_to_it = [(source, document) for source, document in zip(sources, documents, strict=True) if source.set is None]
    what = ", ".join(source.path for source, _ in open_to_it)
    if not open_to_it:
        raise ParamsError(f"--config_set {config_set} has no effect: each file of --config names its own set")
    if any(config_set in document for _, document in open_to_it):
        return
    known = _top_level(tree)
    names = [name for _, document in open_to_it if not known & document.keys() for name in document]
    raise ParamsError(f"{what}: there is no set {config_set!r}{_instead(config_set, names)}")


def _instead(name: str, names: list[str]) -> str:
    return f"{did_you_mean(name, names)}; there are: {', '.join(names) or 'none'}"


def _layers(source: Source, document: Section, known: set[str]) -> list[Section]:
    """What a file lays over the tree, in this order: the file itself, or a set after those it extends."""
    if source.set is not None:
        return _chain(source, document, known, ())
    if not document:
        return []
    if EXTENDS in document and _holds_sets(document, known):
        raise ParamsError(f"{document.origins[EXTENDS]}: `{EXTENDS}` belongs into a set, and this file holds sets")
    return _whole_file(source, document, known, ())


def _holds_sets(document: Section, known: set[str]) -> bool:
    return bool(document) and not known & document.keys() and not document.keys() <= {CLASS, EXTENDS}


def _whole_file(source: Source, document: Section, known: set[str], children: tuple[Source, ...]) -> list[Section]:
    """What a file lays over the tree if no set is named: its parameters, or its set `default`."""
    holds_sets = _holds_sets(document, known)
    if holds_sets and DEFAULT_SET not in document:
        raise _neither(source.path, document, known)
    return _chain(Source(source.path, DEFAULT_SET if holds_sets else None), document, known, children)


def _neither(path: str, document: Section, known: set[str]) -> ParamsError:
    """The error for a file with neither parameters nor a default set."""
    names = ", ".join(document)
    first = next(iter(document))
    if (dotted := document.dotted()) is not None and dotted.partition(".")[0] in known:
        return ParamsError(f"{document.origins[dotted]}: {nest_instead(dotted)}")
    hint = did_you_mean(first, known)
    if hint or not all(isinstance(value, dict) for value in document.values()):
        return ParamsError(f"{document.origins[first]}: {first} does not exist{hint}")
    return ParamsError(
        f"{path}: no top-level key is a parameter, so its keys are names of sets. Choose one with --config_set: {names}"
    )


def _top_level(tree: Origins) -> set[str]:
    index = Index(tree.raw, tree.cls)
    foreign = [name for spellings in spellings_of(index) for name in spellings.names]
    return {name.partition(".")[0] for name in (*index.by_name, *foreign)}


def _chain(source: Source, document: Section, known: set[str], children: tuple[Source, ...]) -> list[Section]:
    """A set, or a file of plain parameters, after what it extends."""
    content = _content(source, document)
    found: list[Section] = []
    for parent in parents_of(content, source.set):
        wanted = _reference(parent, source, document, content.origins[EXTENDS])
        if (circle := _circle(wanted, (*children, source))) is not None:
            raise ParamsError(f"{content.origins[EXTENDS]}: the sets extend each other in a circle: {circle}")
        inner = document if wanted.path == source.path else document_of(wanted.path)
        follow = _chain if wanted.set is not None or wanted.path == source.path else _whole_file
        layers = follow(wanted, inner, known, (*children, source))
        found += [layer for layer in layers if layer not in found]
    return [*found, _labelled(content, source.set)] if content else found


def _content(source: Source, document: Section) -> Section:
    if source.set is None:
        return document
    if source.set not in document:
        raise ParamsError(f"{source.path}: there is no set {source.set!r}{_instead(source.set, list(document))}")
    content = document[source.set]
    if content is not None and not isinstance(content, Section):
        raise ParamsError(f"{document.origins[source.set]}: the set {source.set!r} must hold names and values")
    return content if content is not None else Section()


def _reference(name: str, source: Source, document: Section, place: str) -> Source:
    """What `extends: name` means: a set of the same file, or another file, relative to this one."""
    if source.set is not None and name in document:
        return Source(source.path, name)
    path, colon, own = name.rpartition(":")
    if not colon and name.lower().endswith(ENDINGS):
        path, own = name, ""
    if not path:
        if source.set is None:
            what = "this file holds parameters and no sets"
            raise ParamsError(f"{place}: {what}, so `{EXTENDS}` expects a file: FILE or FILE:SET")
        hint = _instead(name, list(document))
        raise ParamsError(f"{place}: the set {source.set!r} extends {name!r}, which does not exist{hint}")
    target = os.path.normpath(os.path.join(os.path.dirname(source.path), path))
    if not os.path.exists(target):
        raise ParamsError(f"{place}: `{EXTENDS}: {name}`: there is no file {target}")
    return Source(target, own or None)


def _circle(wanted: Source, chain: tuple[Source, ...]) -> str | None:
    """The cycle that following `wanted` would close."""
    if wanted not in chain:
        return None
    members = [*chain[chain.index(wanted) :], wanted]
    one_file = len({member.path for member in members}) == 1
    return " -> ".join(str(member.set) if one_file and member.set is not None else str(member) for member in members)


def parents_of(content: Section, name: str | None) -> list[str]:
    """What a set extends."""
    parents = content.get(EXTENDS)
    parents = [] if parents is None else parents if isinstance(parents, list) else [parents]
    if not all(isinstance(parent, str) for parent in parents):
        of = f" of the set {name!r}" if name is not None else ""
        raise ParamsError(f"{content.origins[EXTENDS]}: `{EXTENDS}`{of} expects the name of a set, or a list of names")
    return parents


def _labelled(value: Any, name: str | None) -> Any:
    """A copy in which each origin also names the set: `runs.yaml:12 (set big)`."""
    if isinstance(value, Section):
        return Section(
            {key: _labelled(item, name) for key, item in value.items() if key != EXTENDS},
            {key: origin if name is None else f"{origin} (set {name})" for key, origin in value.origins.items()},
        )
    return [_labelled(item, name) for item in value] if isinstance(value, list) else value


class SetInfo(NamedTuple):
    """One set of a file."""

    name: str
    place: str
    """`FILE:LINE`."""
    parents: list[str]
    keys: list[str]
    """What it sets at its top level, `<<` included."""


def list_sets(path: str) -> list[SetInfo]:
    """The sets of a file, in their order; raises ParamsError for a file of parameters."""
    document = document_of(path)
    found = []
    for name, content in document.items():
        if content is not None and not isinstance(content, Section):
            place = document.origins[name]
            raise ParamsError(f"{place}: {name!r} holds a plain value, so this file holds parameters and no sets")
        section = content if content is not None else Section()
        keys = [key for key in section if key != EXTENDS]
        found.append(SetInfo(name, document.origins[name], parents_of(section, name), keys))
    return found


def add_set(path: Path, name: str, values: str, comment: str = "") -> None:
    """Appends a set to a file, or starts a new file with it; everything that is in the file stays as it is.

    `values` is its content as `dump_yaml` writes it, `comment` a line before it.
    """
    if not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
        raise ParamsError(
            f"the name of a set begins with a letter and has letters, digits, `_`, `-`, `.`: received {name!r}"
        )
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    sets = list_sets(str(path)) if path.exists() else []
    if same := [info for info in sets if info.name == name]:
        raise ParamsError(
            f"{same[0].place}: the file has a set {name!r} already; choose another name, or remove it first"
        )
    text = before + ("\n" if before.strip() else "") if before.endswith("\n") or not before else f"{before}\n\n"
    text += f"# {comment}\n" if comment else ""
    body = values.rstrip()
    text += f"{name}:\n" + ("" if body in ("", "{}") else "\n".join(f"  {line}" for line in body.splitlines()) + "\n")
    aside = path.with_name(f".{path.name}.new{path.suffix}")
    aside.write_text(text, encoding="utf-8")
    try:
        content = read(str(aside))
        if not isinstance(content, Section) or list(content) != [*(info.name for info in sets), name]:
            raise ParamsError(f"{path}: a set cannot be appended to a file that is written in braces; add it by hand")
    except ParamsError as error:
        aside.unlink()
        raise ParamsError(str(error).replace(str(aside), str(path))) from None
    aside.replace(path)
