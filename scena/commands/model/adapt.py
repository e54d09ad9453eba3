"""`scena adapt DIR --out DIR2 --flags`: the same weights with changed scenario parameters."""

from pathlib import Path

from scena.commands.model.exported import ExportOptions, asks_for_help, open_exports
from scena.commands.places import make_folder
from scena.commands.scenario_argument import root_of, start_work
from scena.commands.usage import print_usage
from scena.params import ParamsError, param, parse, parse_options

USAGE = """usage: scena adapt DIR --out DIR2 [--data.…] [--model.…] [--evaluator.…]

Writes a new export directory with the weights of DIR (the best or export directory of a run) and changed parameters of its scenario,
for example other processors. Refused if the changed model has weights of other shapes.
`scena adapt DIR --help` lists everything that can be set."""


class AdaptOptions(ExportOptions):
    """Which model, and where the new one goes."""

    export_dir: list[Path] = param([], hidden=True, help="the directory, named first")
    out: Path | None = param(None, help="the new export directory")


def run(arguments: list[str]) -> int:
    """Adapts an exported model."""
    if not arguments or arguments[0].startswith("-"):
        if asks_for_help(arguments):
            print_usage(USAGE)
            return 0
        raise ParamsError("name the model first: scena adapt RUN/best --out NEW_DIRECTORY --model.…")
    options, rest = parse_options(AdaptOptions, arguments[1:])
    options.export_dir = [Path(arguments[0])]
    if options.out is None and not asks_for_help(rest):
        raise ParamsError(f"--out is required: scena adapt {arguments[0]} --out NEW_DIRECTORY --model.…")
    _, (export,) = open_exports(options, "adapt")
    root = root_of(scenario=export.params.scenario)
    parsed = parse(root, rest, prog=f"scena adapt {arguments[0]}", options=options)
    assert options.out is not None
    make_folder("--out", options.out.parent)
    start_work(options)
    from scena.scenario.exporting import adapt

    adapt(export, parsed.params.scenario, options.out)
    print(f"Wrote {options.out}")
    return 0
