"""What `scena runs --group` prints, and `--seeds` at the end: a row for each group of runs that differ in their seed only."""

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.output import print_table, print_wrapped
from scena.display import number, one_line, terminal_width
from scena.params import ParamsError

if TYPE_CHECKING:
    from scena.evaluation.statistics.student import Summary
    from scena.experiments.run_groups import RunGroup

EXPLAINED = "n finished runs with a seed each; deviation: sample standard deviation; interval of the mean: Student's t."


def show_groups(runs: list[Any], options: Any) -> None:
    """Prints the groups of some runs, or writes or draws them, as the options of `scena runs` want it."""
    from scena.experiments.run_groups import group_runs

    groups = group_runs(runs)
    if options.plot is not None:
        _plot(groups, options.plot, options.result)
    if options.csv is not None:
        _write_csv(options.csv, groups)
        return
    print_groups(groups, sort=options.sort, reverse=options.reverse, wide=options.wide)


def print_groups(
    groups: "list[RunGroup]", *, sort: str | None = None, reverse: bool = False, wide: bool = False
) -> None:
    """Prints the groups of each scenario, and which runs do not count."""
    from scena.evaluation.statistics.student import WITHOUT_WIDTH
    from scena.experiments.run_groups import notes

    counted = [group for group in groups if group.runs]
    width = None if wide else terminal_width()
    for index, scenario in enumerate(dict.fromkeys(group.scenario for group in counted)):
        own = [group for group in counted if group.scenario == scenario]
        total = sum(len(group.runs) for group in own)
        print("\n" * bool(index) + f"{one_line(scenario)} ({_count(own, 'group')} of {_count(range(total), 'run')})")
        _print_scenario(own, width, sort, reverse)
    print_wrapped(EXPLAINED if counted else "There are no finished runs.")
    spread = [group.summary(group.results()[0]) for group in counted if group.results()]
    if any(one is not None and one.interval is not None and one.interval.without_width for one in spread):
        print_wrapped(WITHOUT_WIDTH)
    for line in notes(groups):
        print(line, file=sys.stderr)


def _print_scenario(groups: "list[RunGroup]", width: int | None, sort: str | None, reverse: bool) -> None:
    from scena.experiments.run_groups import BEST, differences
    from scena.experiments.run_table import fitting, short_names, shortened, sort_rows

    differ = differences(groups)
    results = list(dict.fromkeys(name for group in groups for name in group.results()))
    first = BEST if BEST in results else next((name for name in ("val_loss", "loss") if name in results), "")
    rows: list[dict[str, Any]] = []
    for group in groups:
        summary = group.summary(first) if first else None
        row: dict[str, Any] = {"runs": group.name, "n": len(group.runs)}
        row |= {"mean": _text(summary, "mean"), "deviation": _text(summary, "deviation"), "95 %": _interval(summary)}
        row |= {name: group.identity.get(name, "").strip('"') for name in differ}
        row |= {name: _short(group.summary(name), len(group.runs)) for name in results if name != first}
        rows.append(row)
    if sort is not None:
        by_value = {id(row): group.summary(sort) for row, group in zip(rows, groups, strict=True)}
        if any(by_value.values()):
            rows.sort(key=lambda row: (found := by_value[id(row)]) is not None and found.mean, reverse=reverse)
        else:
            rows = sort_rows(rows, sort, reverse=reverse)
    keys = {group.best_key for group in groups if group.best_key}
    key = (next(iter(keys)) if len(keys) == 1 else "best value") if first == BEST else first
    titles = short_names(rows) | {
        "mean": f"{'best ' if first == BEST and len(keys) == 1 else ''}{key}",
        "95 %": "95 % interval",
    }
    columns = ["runs", *differ, "n", "mean", "deviation", "95 %", *(name for name in results if name != first)]
    wanted = ["n", "mean", "deviation", "95 %", "runs", *columns]
    cells = {name: [one_line(str(row[name])) for row in rows] for name in dict.fromkeys(columns)}
    if width is not None:
        for name in ("runs", *differ):
            cells[name] = [shortened(cell, 24) for cell in cells[name]]
            titles[name] = shortened(titles[name], 24)
        widths = {name: max(map(len, [titles[name], *cells[name]])) for name in cells}
        columns = fitting(widths, list(dict.fromkeys(wanted)), width)
    print_table(
        [titles[name] for name in columns],
        list(zip(*(cells[name] for name in columns), strict=True)),
        wide=width is None,
    )
    if hidden := len(cells) - len(columns):
        print(f"… {hidden} more: --csv, --wide")


def _text(summary: "Summary | None", name: str) -> str:
    return number(getattr(summary, name)) if summary is not None else ""


def _interval(summary: "Summary | None") -> str:
    interval = summary.interval if summary is not None else None
    return f"{interval.low:.4g} – {interval.high:.4g}" if interval is not None else ""


def _short(summary: "Summary | None", runs: int) -> str:
    if summary is None:
        return ""
    spread = f" ± {summary.deviation:.2g}" if summary.deviation is not None else ""
    return f"{summary.mean:.4g}{spread}{f' (n={summary.n})' if summary.n != runs else ''}"


def _count(items: Any, what: str) -> str:
    return f"{len(items)} {what}{'s' if len(items) != 1 else ''}"


def _write_csv(path: str, groups: "list[RunGroup]") -> None:
    from scena.experiments.run_groups import differences

    counted = [group for group in groups if group.runs]
    differ = differences(counted)
    results = list(dict.fromkeys(name for group in counted for name in group.results()))
    parts = ("n", "mean", "deviation", "low", "high")
    table = [["scenario", "runs", *differ, *(f"{name} {part}" for name in results for part in parts)]]
    for group in counted:
        row = [group.scenario, group.name, *(group.identity.get(name, "").strip('"') for name in differ)]
        for name in results:
            found = group.summary(name)
            interval = found.interval if found is not None else None
            values = (found.n, found.mean, found.deviation) if found is not None else (0, None, None)
            ends = (interval.low, interval.high) if interval is not None else (None, None)
            row += ["" if value is None else repr(value) for value in (*values, *ends)]
        table.append(row)
    if path == "-":
        csv.writer(sys.stdout).writerows(table)
        return
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(table)


def _plot(groups: "list[RunGroup]", path: Path, result: str | None) -> None:
    """Draws the mean of one result over the epochs of each group, with its 95 % interval."""
    from scena.evaluation.statistics.student import summarize
    from scena.experiments.run_groups import differences
    from scena.experiments.run_table import shortened
    from scena.plots import draw_bands

    counted = [group for group in groups if group.runs]
    known = list(dict.fromkeys(name for group in counted for run in group.runs for name in run.results))
    wished = [*(group.best_key for group in counted if group.best_key), "val_loss", "loss"]
    name = result or next((name for name in wished if name in known), "loss")
    if name not in known:
        raise ParamsError(f"no run has the result {name!r}; there are: {', '.join(known) or 'none'}")
    differ = differences(counted)
    bands = []
    for group in counted:
        points: dict[float, list[float]] = {}
        for row in (row for run in group.runs for row in run.history if name in row):
            points.setdefault(row["epoch"], []).append(row[name])
        found = {epoch: summarize(values) for epoch, values in sorted(points.items())}
        own = [f"{key.rpartition('.')[2]}={group.identity[key]}" for key in differ if key in group.identity]
        label = shortened(" ".join(own) or group.name, 40)
        halves = [summary.half_width or 0.0 for summary in found.values()]
        bands.append((f"{label} (n={len(group.runs)})", list(found), [one.mean for one in found.values()], halves))
    draw_bands(path, bands, title=f"{name}, mean and 95 % interval over seeds", labels=("epoch", name))
    print(f"{path}: {name} of {len(bands)} groups", file=sys.stderr)
