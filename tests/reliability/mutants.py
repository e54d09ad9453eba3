"""Small changes of functions, one at a time: what a test suite has to notice. `mutation.py` runs the tests on them.

Mutants are made from the syntax tree of a file and put into the functions that exist already, so no module is imported again, and a
name that other modules have imported means the changed function, too. Default values, decorators and annotations stay as they are,
and so do the texts of errors and of the log.
"""

import ast
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

Key = tuple[str, int, str]
"""A function: its file, its first line and its qualified name."""

_OTHERS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
    ast.Break: ast.Continue, ast.Continue: ast.Break,
}  # fmt: skip


class Mutant(NamedTuple):
    """One change: the number of it in the file, where it is, and what it does."""

    path: str
    number: int
    line: int
    what: str
    function: Key
    idle: bool = False
    """Whether it changes nothing: another docstring, or `None` for a constant that counts as false, too, and has mutants of its own."""

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}: {self.what} (number {self.number})"


class _Change(NamedTuple):
    line: int
    what: str
    apply: Callable[[], None]
    function: Key
    idle: bool


def mutants_of(path: Path) -> list[Mutant]:
    """All mutants of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        Mutant(str(path), number, change.line, change.what, change.function, change.idle)
        for number, change in enumerate(_changes(tree, str(path)))
    ]


def functions_by_key(paths: list[Path]) -> dict[Key, list[FunctionType]]:
    """The functions of these files that exist in this process."""
    gc.unfreeze()  # frozen objects are not listed
    known = {str(path.resolve()): str(path) for path in paths}
    found: dict[Key, list[FunctionType]] = {}
    for value in gc.get_objects():
        if isinstance(value, FunctionType) and value.__code__.co_filename in known:
            code = value.__code__
            key = known[code.co_filename], code.co_firstlineno, code.co_qualname
            found.setdefault(key, []).append(value)
    return found


def install(mutant: Mutant, functions: list[FunctionType]) -> None:
    """Changes the functions of this process."""
    path = Path(mutant.path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for number, change in enumerate(_changes(tree, mutant.path)):
        if number == mutant.number:
            change.apply()
            break
    compiled = compile(ast.fix_missing_locations(tree), str(path.resolve()), "exec", dont_inherit=True)
    _, line, name = mutant.function
    code = next(code for code in _codes(compiled) if (code.co_firstlineno, code.co_qualname) == (line, name))
    for function in functions:
        function.__code__ = code


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _changes(tree: ast.Module, path: str) -> Iterator[_Change]:
    for function, name in _functions(tree, ""):
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        key = (path, first, name)
        for position, statement in enumerate(function.body):
            if position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # the docstring
            false = {
                node.lineno
                for node in ast.walk(statement)
                if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and not node.value.value
            }
            for line, what, apply in _of_child(function.body, position, statement):
                idle = _is_text(statement) or (what == "returns None" and line in false)
                yield _Change(line, what, apply, key, idle)


def _functions(node: Any, prefix: str) -> Iterator[tuple[Any, str]]:
    """The functions of modules and classes; those inside functions are part of them."""
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child, f"{prefix}{child.name}"
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


Found = tuple[int, str, Callable[[], None]]


def _of_child(holder: list[Any], position: int, node: ast.AST) -> Iterator[Found]:
    """The changes of a node that stands in a list, and of everything below it."""

    def replace(new: ast.AST) -> Callable[[], None]:
        return lambda: holder.__setitem__(position, new)

    yield from _own(node, replace)
    yield from _below(node)


def _below(node: ast.AST) -> Iterator[Found]:
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or _is_log(node):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment", "args") and not isinstance(
            node, ast.Call
        ):
            continue
        if isinstance(value, list):
            for position, child in enumerate(value):
                if isinstance(child, ast.AST) and not (field == "body" and position == 0 and _is_text(child)):
                    yield from _of_child(value, position, child)
        elif isinstance(value, ast.AST):

            def replace(new: ast.AST, field: str = field) -> Callable[[], None]:
                return lambda: setattr(node, field, new)

            yield from _own(value, replace)
            yield from _below(value)


def _own(node: Any, replace: Callable[[ast.AST], Callable[[], None]]) -> Iterator[Found]:
    """The changes of a node itself."""
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Compare):
        for position, operator in enumerate(node.ops):
            other = _OTHERS[type(operator)]()
            yield (
                line,
                f"{_name(operator)} becomes {_name(other)}",
                lambda p=position, o=other: node.ops.__setitem__(p, o),
            )
    elif isinstance(node, ast.BoolOp | ast.BinOp | ast.AugAssign) and type(node.op) in _OTHERS:
        other = _OTHERS[type(node.op)]()
        yield line, f"{_name(node.op)} becomes {_name(other)}", lambda: setattr(node, "op", other)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield line, f"{_name(node.op)} is removed", replace(node.operand)
    elif isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes) and node.value not in (None, ...):
        value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield line, f"{node.value!r} becomes {value!r}", replace(ast.copy_location(ast.Constant(value), node))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and node.value:
        value = node.value + (b"XX" if isinstance(node.value, bytes) else "XX")
        yield line, f"{node.value!r:.40} becomes another text", replace(ast.copy_location(ast.Constant(value), node))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield line, "returns None", lambda: setattr(node, "value", ast.copy_location(ast.Constant(None), node))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _is_log(node):
        yield line, "the call is removed", replace(ast.copy_location(ast.Pass(), node))
    elif isinstance(node, ast.Break | ast.Continue):
        other = _OTHERS[type(node)]()
        yield line, f"{_name(node)} becomes {_name(other)}", replace(ast.copy_location(other, node))
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        yield line, "the condition is negated", lambda: setattr(node, "test", test)


def _name(node: ast.AST) -> str:
    return type(node).__name__


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_log(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(call, ast.Call) and ast.unparse(call.func).startswith(
        ("logger.", "logging.", "warnings.", "print")
    )
