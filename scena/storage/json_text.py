"""JSON that any reader accepts: it has neither NaN nor infinity.

Results for people and other programs have null in their place (`json_text`), which reads back as NaN (`number_or_nan`). The state
that a training resumes from keeps such numbers exactly (`exact_json`, `from_exact_json`).
"""

import json
import math
from typing import Any

_FLOAT = "$float"


def json_text(value: Any, indent: int | None = 1) -> str:
    """The text of a JSON value; numbers that are not finite are null."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_replaced(value, None), indent=indent, ensure_ascii=False, allow_nan=False)


def number_or_nan(value: Any) -> Any:
    """A number that `json_text` wrote."""
    return math.nan if value is None else value


def exact_json(value: Any) -> str:
    """The text of a JSON value from which `from_exact_json` makes the same value."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_replaced(value, _FLOAT), allow_nan=False)


def from_exact_json(text: str | bytes) -> Any:
    """The value that `exact_json` wrote.

    Raises:
        ValueError: the text is not JSON.
    """
    return json.loads(text, object_hook=_number)


def _replaced(value: Any, key: str | None) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(item, key) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, key) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if key is None else {key: repr(float(value))}
    return value


def _number(value: dict[str, Any]) -> Any:
    return float(value[_FLOAT]) if len(value) == 1 and isinstance(value.get(_FLOAT), str) else value
