"""`scena import-checkpoint CKPT SCENARIO --map 'old=new' --out DIR`: weights of a TensorFlow checkpoint for a scenario's model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.scenario_argument import ImportOptions, import_modules, root_of, start_work, take_scenario
from scena.commands.usage import print_usage
from scena.params import ParamsError, param, parse, parse_options
from scena.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from scena.backends.tensorflow.checkpoint_import import Matches

USAGE = """usage: scena import-checkpoint CKPT SCENARIO --out DIR [--map 'old=new' …] [--partial] [--flags]

Brings the weights of a TensorFlow checkpoint (tf.train.Checkpoint, or TF1's Saver) into a scenario's model and exports it to DIR,
for predict, lav and --warmstart. CKPT is the checkpoint's prefix, such as run/model.ckpt-100, or a directory with a latest one.
Rules say how stored names become the model's: 'old' is a regular expression, for example --map 'net/fc(.)/weights=dense_\\1/kernel'.
The end of a path is enough if it is unique; trainable/3 is the fourth trainable variable. A table shows what did not match."""


class ImportCheckpointOptions(ImportOptions):
    """What goes where."""

    map: list[str] = param([], help="rules 'old=new', applied in order to each stored name")
    out: Path | None = param(None, help="the export directory to write")
    partial: bool = param(False, help="export even if the checkpoint lacks some of the model's variables")


def run(arguments: list[str]) -> int:
    """Imports a checkpoint."""
    if not arguments or arguments[0].startswith("-"):
        if any(argument in ("-h", "--help") for argument in arguments):
            print_usage(USAGE)
            return 0
        raise ParamsError(
            "name the checkpoint and the scenario first: scena import-checkpoint CKPT SCENARIO --out DIR."
        )
    scenario, rest = take_scenario(f"import-checkpoint {arguments[0]}", arguments[1:])
    options, rest = parse_options(ImportCheckpointOptions, rest)
    import_modules(options.modules)
    rules = [_rule(text) for text in options.map]
    parsed = parse(
        root_of(trainer=scenario.default_trainer_params()), rest, prog=f"scena import-checkpoint {arguments[0]} {arguments[1]}",
        description=USAGE.partition("\n\n")[2], options=options,
    )  # fmt: skip
    if options.out is None:
        raise ParamsError("--out is required: the directory to write the model to.")
    if options.out.exists():
        raise ScenarioError(f"{options.out} exists already; choose another --out.")
    start_work()
    import keras

    from scena.backends.tensorflow.checkpoint_import import TensorFlowCheckpoint, match_variables

    checkpoint = TensorFlowCheckpoint(Path(arguments[0]))
    trainer = parsed.params.trainer
    keras.utils.clear_session()  # layers are numbered from the start, so that rules always mean the same
    part = scenario(trainer.scenario)
    built = part.build()
    variables = list(built.prediction_model.variables)
    matches = match_variables(checkpoint.variables, variables, rules)
    print(table(matches, variables))
    if not matches.found or ((matches.missing or matches.misfits) and not options.partial):
        raise ScenarioError(
            f"{len(matches.found)} of the model's variables were found, {len(matches.missing)} are missing and "
            f"{len(matches.misfits)} have another shape. Add rules with --map, or accept that with --partial."
        )
    for position, stored in matches.found.items():
        variables[position].assign(checkpoint.value(stored))
    part.export(built, options.out, trainer, result={"imported_from": checkpoint.prefix})
    print(f"Wrote {options.out}")
    return 0


def table(matches: "Matches", variables: list[Any]) -> str:
    """What matched, and what did not and why."""
    rows = [(item.name, variables[i].path, "") for i, item in sorted(matches.found.items())]
    rows += [
        (item.name, variables[i].path, f"shape {item.shape}, the model has {tuple(variables[i].shape)}")
        for item, i in matches.misfits
    ]
    rows += [("", variables[i].path, "not in the checkpoint") for i in matches.missing]
    rows += [(_both(item.name, item.full_name), "", f"not in the model {item.shape}") for item in matches.unused]
    widths = [max([len(title), *(len(row[i]) for row in rows)]) for i, title in enumerate(("checkpoint", "model"))]
    lines = [f"{'checkpoint':{widths[0]}}  {'model':{widths[1]}}"]
    lines += [f"{stored:{widths[0]}}  {path:{widths[1]}}  {note}".rstrip() for stored, path, note in rows]
    if matches.left_out:
        lines.append(f"({matches.left_out} counters and values of optimizers are left out)")
    return "\n".join(lines)


def _both(name: str, full_name: str) -> str:
    return f"{name} ({full_name})" if full_name and full_name != name else name


def _rule(text: str) -> tuple[str, str]:
    from scena.backends.tensorflow.checkpoint_import import parse_rule

    try:
        return parse_rule(text)
    except ValueError as error:
        raise ParamsError(f"--map {text!r}: expected {error}.") from None
