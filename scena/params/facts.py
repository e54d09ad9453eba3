"""Facts that stand beside a parameter's declaration, asked of a whole tree: which flags differ from their defaults, and what that means."""

from collections.abc import Iterator

from scena.params.declare import Field, Params


def changed_flags(params: Params, prefix: str) -> Iterator[tuple[str, Field]]:
    """Each parameter of a tree that differs from its default: its flag and its declaration.

    Args:
        params: the root of the tree.
        prefix: what the command line calls the root, for example "trainer".
    """
    for name, field in type(params).__params__.items():
        value = getattr(params, name)
        flag = f"{prefix}.{name}"
        if field.flat:
            flag = field.flat if isinstance(field.flat, str) else name
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
