"""Tables of runs: columns, their choice by width, sorting, filtering and comparing. The command prints them."""

import json
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from scena.errors import ExperimentError, did_you_mean
from scena.experiments.stored_run import StoredRun

FIXED = ("run", "status", "epoch", "best", "best epoch", "duration")
GAP = 2
"""Spaces between two columns."""
WIDEST_CELL = 24
RUN_ONLY = (
    "trainer.output_dir",
    "trainer.checkpoint_dir",
    "trainer.log_dir",
    "trainer.export_dir",
    "trainer.best_dir",
    "trainer.random_seed",
)
"""Parameters that differ in every run; shown only on request."""

Row = dict[str, Any]
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_CONDITION = re.compile(r"(?P<name>[^<>=!~]+?)\s*(?P<sign>>=|<=|!=|=|<|>|~)\s*(?P<value>.*)", re.DOTALL)


def make_rows(runs: list[StoredRun], names: dict[str, str] | None = None) -> list[Row]:
    """One row per run, with all columns to show, sort by or filter on; `names` are those of directories, if not their paths."""
    return [
        {
            "run": (names or {}).get(str(run.directory), str(run.directory)),
            "status": run.status,
            "epoch": run.epoch,
            "best": run.best,
            "best epoch": run.best_epoch,
            "duration": round(run.seconds, 1),
            **run.results,
            **run.params,
            "scenario": run.scenario,  # not the class of its parameters
        }
        for run in runs
    ]


def differing(runs: list[StoredRun]) -> list[str]:
    """The parameters in which runs differ, single values before lists, and the scenario if they are of several."""
    names = dict.fromkeys(name for run in runs for name in run.params)
    found = [
        name
        for name in names
        if name not in RUN_ONLY and len({json.dumps(run.params.get(name), sort_keys=True) for run in runs}) > 1
    ]
    found.sort(key=lambda name: any(isinstance(run.params.get(name), list | dict) for run in runs))  # wide ones last
    return (["scenario"] if len({run.scenario for run in runs}) > 1 else []) + found


def result_names(runs: list[StoredRun]) -> list[str]:
    """The names of the results of the last epoch."""
    return list(dict.fromkeys(name for run in runs for name in run.results))


def filter_rows(rows: list[Row], conditions: list[str]) -> list[Row]:
    """The rows that meet all conditions, each `NAME=VALUE`, `!=`, `<`, `<=`, `>`, `>=`, or `~` for a part of the text."""
    for condition in conditions:
        match = _CONDITION.fullmatch(condition.strip())
        if match is None:
            raise ExperimentError(
                f"--filter {condition!r} is not a condition: NAME=VALUE, or one of != < <= > >= ~, such as 'val_acc>0.9'."
            )
        name = match["name"].strip()
        (name,) = full_names(rows, [name], "--filter")
        rows = [row for row in rows if _holds(row.get(name), match["sign"], match["value"].strip())]
    return rows


def sort_rows(rows: list[Row], name: str, *, reverse: bool = False) -> list[Row]:
    """The rows sorted by one column; numbers before text, missing values last."""
    (name,) = full_names(rows, [name], "--sort")

    def order(row: Row) -> tuple[int, Any]:
        return (0, row[name]) if isinstance(row[name], int | float) else (1, shown(row[name]))

    empty = [row for row in rows if _is_empty(row.get(name))]
    full = [row for row in rows if not _is_empty(row.get(name))]
    return [*sorted(full, key=order, reverse=reverse), *empty]


def shown(value: Any) -> str:
    """A value as text for a table."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def full_names(rows: list[Row], names: list[str], flag: str) -> list[str]:
    """The columns that these names, or their ends (`lr` for `learning_rate.lr`), stand for.

    Raises:
        ExperimentError: no run has such a column, or several have the same end.
    """
    known = dict.fromkeys(key for row in rows for key in row)
    found = []
    for name in names:
        ending = [key for key in known if key.endswith(f".{name}")]
        if rows and name not in known and len(ending) != 1:
            hint = f" (did you mean {' or '.join(ending[:3])}?)" if ending else did_you_mean(name, known)
            raise ExperimentError(f"{flag}: no run has {name!r}{hint}.")
        found.append(name if name in known or not ending else ending[0])
    return found


def short_names(rows: list[Row]) -> dict[str, str]:
    """The last part of each column's name where no other column ends with it, else the name."""
    known = list(dict.fromkeys(key for row in rows for key in row))
    ends = [name.rpartition(".")[2] for name in known]
    return {name: end if ends.count(end) == 1 else name for name, end in zip(known, ends, strict=True)}


def by_scenario(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each scenario, in the order of the rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["scenario"], []).append(row)
    return groups


def fitting(widths: dict[str, int], wanted: list[str], width: int) -> list[str]:
    """The columns that fit into a width, taken in the order of `wanted` until one does not; the first one always does."""
    chosen: list[str] = []
    used = -GAP
    for name in wanted:
        used += GAP + widths[name]
        if chosen and used > width:
            break
        chosen.append(name)
    return [name for name in widths if name in chosen]


def shortened(text: str, width: int) -> str:
    """The text, with an ellipsis in its middle if it is longer than `width`."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def _holds(value: Any, sign: str, wanted: str) -> bool:
    if sign == "~":
        return wanted in shown(value)
    if value is None:
        return sign == "!="
    try:
        left, right = float(value), float(wanted)
    except (TypeError, ValueError):
        if sign in ("=", "!="):
            return (shown(value) == wanted) == (sign == "=")
        return False
    return _COMPARISONS[sign](left, right)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
