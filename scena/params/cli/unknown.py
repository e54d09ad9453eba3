"""What to tell about a name that does not exist: who has it, how it is spelt, or what is there instead."""

from scena.errors import ParamsError, close_names
from scena.params.cli.settable import Index, Node, walk
from scena.params.selection import CLASS, candidates, class_of
from scena.params.tree import default_raw
from scena.params.type_kinds import LEAF, LIST, PARAMS


def unknown_name(name: str, index: Index, *, flags: bool) -> str:
    """One sentence about a name that the current selection does not have. `flags`: call it `--name`, as on the command
    line.
    """
    dashes = "--" if flags else ""
    for explain in (_hidden, _below_leaf, _list_item, _other_owner):
        if message := explain(name, index, dashes):
            return message
    close = _similar(name, index)
    hint = f"; did you mean {' or '.join(dashes + other for other in close)}?" if close else ""
    return f"{dashes}{name} does not exist{hint}"


def _hidden(name: str, index: Index, dashes: str) -> str | None:
    if any(node.hidden for node in index.get(name)):
        return f"{dashes}{name} cannot be set: it is state that is stored with the parameters"
    return None


def _below_leaf(name: str, index: Index, dashes: str) -> str | None:
    parent = name.rpartition(".")[0]
    while parent:
        if any(node.kind.form == LEAF for node in index.get(parent)):
            return f"{dashes}{name} does not exist: {dashes}{parent} is a plain value"
        parent = parent.rpartition(".")[0]
    return None


def _list_item(name: str, index: Index, dashes: str) -> str | None:
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        for node in index.get(".".join(parts[:length])):
            if node.kind.form == LIST and not index.get(".".join(parts[: length + 1])):
                return _missing_item(
                    name, node, ".".join(parts[:length]), parts[length], ".".join(parts[length + 1 :]), dashes
                )
    return None


def _missing_item(name: str, node: Node, list_name: str, item: str, rest: str, dashes: str) -> str:
    classes = [raw[CLASS] for raw in node.value or ()]
    places = [position for position, class_name in enumerate(classes) if class_name == item]
    if len(places) > 1:
        ways = " or ".join(f"{dashes}{list_name}.{place}{'.' + rest if rest else ''}" for place in places)
        return f"{dashes}{name}: there are {len(places)} {item} in {dashes}{list_name}; say which one: {ways}"
    if not classes:
        return f"{dashes}{name} does not exist: {dashes}{list_name} is empty"
    listed = ", ".join(f"{position} ({class_name})" for position, class_name in enumerate(classes))
    advice = ""
    if item in candidates(node.kind, node.field):
        advice = f"; add it: {dashes}{list_name} {' '.join([*classes, item])}"
    elif close := close_names(item, classes):
        advice = f"; did you mean {dashes}{list_name}.{close[0]}{'.' + rest if rest else ''}?"
    return f"{dashes}{name} does not exist: {dashes}{list_name} has the items {listed}{advice}"


def _other_owner(name: str, index: Index, dashes: str) -> str | None:
    """A class that could be chosen somewhere, but is not, may have it."""
    for node in reversed(index.nodes):
        if node.kind.form != PARAMS or node.hidden:
            continue
        try:
            current = class_of(node.value, node.kind, node.field)
        except ParamsError:
            continue
        owners = []
        for option, cls in candidates(node.kind, node.field).items():
            if cls is current:
                continue
            names = (
                own
                for place in walk(default_raw(cls, node.kind, node.field), cls, node.names, node.kind)
                for own in place.names
            )
            if name in names:
                owners.append(option)
        if owners:
            selected = "None" if node.value is None else node.value[CLASS]
            has = f"{', '.join(owners[:-1])} and {owners[-1]} have" if len(owners) > 1 else f"{owners[0]} has"
            equals = " " if dashes else ": "
            return (
                f"{dashes}{name} does not exist for {dashes}{node.name} {selected}; "
                f"{has} it: {dashes}{node.name}{equals}{owners[0]}"
            )
    return None


def _similar(name: str, index: Index) -> list[str]:
    shown = [node.name for node in index.nodes if not node.hidden]
    last = name.rpartition(".")[2]
    same_end = [other for other in shown if other.rpartition(".")[2] == last]
    if 0 < len(same_end) <= 3:
        return same_end
    parent = name.rpartition(".")[0]
    siblings = {other.rpartition(".")[2]: other for other in shown if other.rpartition(".")[0] == parent}
    near = [siblings[close] for close in close_names(last, siblings, 2)]
    return near or close_names(name, shown, 2) or close_names(name, index.by_name, 2)
