"""The message about a name that does not exist: who has it, how it is spelled, or what there is instead."""

from scena.errors import ParamsError, close_names
from scena.params.kinds import CLASS, candidates, class_of
from scena.params.settable import Index, Node, walk
from scena.params.tree import default_raw


def unknown_name(name: str, index: Index, *, flags: bool) -> str:
    """One sentence about a name that the current selection does not have. `flags`: call it `--name`, as on a command line."""
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
        if any(node.kind.form == "leaf" for node in index.get(parent)):
            return f"{dashes}{name} does not exist: {dashes}{parent} is a plain value"
        parent = parent.rpartition(".")[0]
    return None


def _list_item(name: str, index: Index, dashes: str) -> str | None:
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        for node in index.get(".".join(parts[:length])):
            if node.kind.form == "list" and not index.get(".".join(parts[: length + 1])):
                rest = "".join(f".{part}" for part in parts[length + 1 :])
                return _missing_item(node, f"{dashes}{'.'.join(parts[:length])}", parts[length], rest)
    return None


def _missing_item(node: Node, list_name: str, item: str, rest: str) -> str:
    name = f"{list_name}.{item}{rest}"
    classes = [raw[CLASS] for raw in node.value or ()]
    places = [position for position, class_name in enumerate(classes) if class_name == item]
    if len(places) > 1:
        ways = " or ".join(f"{list_name}.{place}{rest}" for place in places)
        return f"{name}: there are {len(places)} {item} in {list_name}; say which one: {ways}"
    if not classes:
        return f"{name} does not exist: {list_name} is empty"
    listed = ", ".join(f"{position} ({class_name})" for position, class_name in enumerate(classes))
    advice = ""
    if item in candidates(*node.choice):
        advice = f"; add it: {list_name} {' '.join([*classes, item])}"
    elif close := close_names(item, classes):
        advice = f"; did you mean {list_name}.{close[0]}{rest}?"
    return f"{name} does not exist: {list_name} has the items {listed}{advice}"


def _other_owner(name: str, index: Index, dashes: str) -> str | None:
    """A class that could be chosen somewhere, but is not, may have it."""
    for node in reversed(index.nodes):
        if node.kind.form != "params" or node.hidden:
            continue
        try:
            current = class_of(node.value, *node.choice)
        except ParamsError:
            continue
        owners = []
        for option, cls in candidates(*node.choice).items():
            if cls is not current:
                places = walk(default_raw(cls, *node.choice), cls, node.names, node.kind)
                owners += [option] if any(name in place.names for place in places) else []
        if owners:
            selected = "None" if node.value is None else node.value[CLASS]
            has = f"{', '.join(owners[:-1])} and {owners[-1]} have" if len(owners) > 1 else f"{owners[0]} has"
            chosen = f"{dashes}{node.name}{' ' if dashes else ': '}{owners[0]}"
            return f"{dashes}{name} does not exist for {dashes}{node.name} {selected}; {has} it: {chosen}"
    return None


def _similar(name: str, index: Index) -> list[str]:
    shown = [node.name for node in index.nodes if not node.hidden]
    last = name.rpartition(".")[2]
    same_end = [other for other in shown if other.rpartition(".")[2] == last]
    if 0 < len(same_end) <= 3:
        return same_end
    if elsewhere := index.known_elsewhere(last):
        return elsewhere[:3]
    parent = name.rpartition(".")[0]
    siblings = {other.rpartition(".")[2]: other for other in shown if other.rpartition(".")[0] == parent}
    near = [siblings[close] for close in close_names(last, siblings, 2)]
    return near or close_names(name, shown, 2) or close_names(name, index.by_name, 2)
