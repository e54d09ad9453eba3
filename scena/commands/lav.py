"""`scena lav --export_dir DIR… [--data.…] [--lav.…]`: load and validate."""

import json

from pathlib import Path
from typing import Any

from scena.commands.exported import ExportOptions, asks_for_help, open_exports
from scena.commands.scenario_argument import start_work
from scena.data.params import DataGeneratorParams
from scena.evaluation.params import LAVParams
from scena.params import Params, param, parse, parse_options
from scena.scenario.errors import ScenarioError

USAGE = """usage: scena lav --export_dir DIR… [--data.…] [--lav.…] [--json FILE]

Loads exported models and computes losses, metrics and the evaluator's results on the data the run validated with, or on other data.
`scena lav --export_dir DIR --help` lists everything that can be set."""


class LavOptions(ExportOptions):
    """Which models to validate, and where the results go."""

    json: Path | None = param(None, help="also write the results to this JSON file")


class LavRoot(Params):
    """What to validate on, and how."""

    data: DataGeneratorParams | None = param(None, help="the data to validate on (default: the run's validation data)")
    lav: LAVParams = param(help="how to validate")


def run(arguments: list[str]) -> int:
    """Validates exported models."""
    options, rest = parse_options(LavOptions, arguments)
    if not options.export_dir and asks_for_help(rest):
        print(USAGE)
        return 0
    scenario, exports = open_exports(options, "lav")
    pipelines = exports[0].trainer_params.gen
    default = LavRoot(data=pipelines.val_gen(), lav=LAVParams(pipeline=pipelines.val))
    parsed = parse(default, rest, prog="scena lav", options=options)
    source: DataGeneratorParams | None = parsed.params.data
    if source is None:
        raise ScenarioError("The run had no validation data; name some with --data.")
    start_work()
    results: dict[str, dict[str, Any]] = {}
    for export in exports:
        lav = scenario.create_lav(export.directory, parsed.params.lav)
        for name, part in source.parts().items():
            results[" ".join(filter(None, [str(export.directory), name]))] = _validate(
                lav, part, len(exports) > 1 or bool(name)
            )
    print(table(results))
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


def _validate(lav: Any, source: DataGeneratorParams, several: bool) -> dict[str, Any]:
    from scena.commands.progress import counting

    with counting("Validating") as advance:
        results: dict[str, Any] = lav.run(source, advance)
    del several
    return results


def table(results: dict[str, dict[str, Any]]) -> str:
    """The results as a text table, a row for each value and a column for each model."""
    names = list(dict.fromkeys(name for values in results.values() for name in values))
    rows = [["", *results]] if len(results) > 1 else []
    rows += [[name, *(_number(values.get(name)) for values in results.values())] for name in names]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
