"""Reading the annotations of a params class: those written as text, those of classes made inside functions, class
variables.
"""

import re
import sys
import typing
from typing import Any, ClassVar

from scena.params.errors import ParamsError


def is_class_variable(annotation: Any) -> bool:
    """Whether an annotation says ClassVar, as an object or as text."""
    if isinstance(annotation, str):
        return re.match(r"(\w+\.)*ClassVar\b", annotation) is not None
    return annotation is ClassVar or typing.get_origin(annotation) is ClassVar


def names_around(cls: type) -> dict[str, Any] | None:
    """The names of the function `cls` is made in that its text annotations use; later nothing could find them any
    more.
    """
    if "<locals>" not in cls.__qualname__:
        return None
    texts = [text for text in cls.__dict__.get("__annotations__", {}).values() if isinstance(text, str)]
    if not texts:
        return None
    wanted = set(re.findall(r"\w+", " ".join(texts)))
    function = cls.__qualname__.rpartition(".<locals>")[0]
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_qualname != function:
        frame = frame.f_back
    return {name: value for name, value in frame.f_locals.items() if name in wanted}


def evaluate(annotation: Any, owner: type, name: str) -> Any:
    """The type an annotation stands for, in the module (and function) of the class it is written in."""
    if not isinstance(annotation, str):
        return annotation
    module = vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}
    known = {**vars(typing), **module}
    local = {**(owner.__dict__.get("__local_names__") or {}), owner.__name__: owner}
    try:
        probe = type("_Probe", (), {"__annotations__": {name: annotation}})
        return typing.get_type_hints(probe, known, local, include_extras=True)[name]
    except (NameError, AttributeError) as error:
        raise ParamsError(
            f"{owner.__name__}.{name}: the type {annotation!r} cannot be resolved: {error}. Import the names of parameter "
            "types at the top of the module (not under `if TYPE_CHECKING`)."
        ) from None
    except SyntaxError:
        raise ParamsError(f"{owner.__name__}.{name}: the type {annotation!r} is not valid Python.") from None
