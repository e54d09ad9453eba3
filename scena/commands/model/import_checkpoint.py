"""`scena import-checkpoint CHECKPOINT SCENARIO --out DIR`: weights of a TensorFlow checkpoint for a scenario's model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.command import ScenarioCommand, ScenarioOptions
from scena.commands.output import text_table
from scena.errors import ScenarioError
from scena.params import Params, ParamsError, param
from scena.scenario.stored import refuse_existing

if TYPE_CHECKING:
    from scena.backends.tensorflow.checkpoint_import import Matches


class Checkpoint(Params):
    """What to import."""

    checkpoint: Path = param(
        required=True,
        positional="CHECKPOINT",
        help="the checkpoint's prefix, such as run/model.ckpt-100, or a directory with a latest one",
    )


class ImportCheckpointOptions(ScenarioOptions, Checkpoint):
    """What goes where."""

    map: list[str] = param([], help="rules 'old=new', applied in order to each stored name")
    out: Path = param(required=True, help="the export directory to write")
    partial: bool = param(False, help="export even if the checkpoint lacks some of the model's variables")


class ImportCheckpoint(ScenarioCommand):
    """Brings the weights of a TensorFlow checkpoint (tf.train.Checkpoint, or TF1's Saver) into a scenario's model and exports it,
    for predict, lav and --warmstart.

    Rules turn stored names into the model's: 'old' is a regular expression, for example
    --map 'net/fc(.)/weights=dense_\\1/kernel'. The end of a path is enough if it is unique; trainable/3 is the fourth
    trainable variable. A table shows what did not match.
    """

    name = "import-checkpoint"
    options: ImportCheckpointOptions

    def uses_project_file(self) -> bool:
        return False

    def run(self) -> None:
        options = self.options
        rules = [_rule(text) for text in options.map]
        refuse_existing(options.out)
        if not (options.checkpoint.exists() or Path(f"{options.checkpoint}.index").exists()):
            raise ScenarioError(
                f"There is no checkpoint {options.checkpoint}. Give its prefix, such as run/model.ckpt-100, or its directory."
            )
        self.start()
        import keras

        from scena.backends.tensorflow.checkpoint_import import TensorFlowCheckpoint, match_variables

        checkpoint = TensorFlowCheckpoint(options.checkpoint)
        keras.utils.clear_session()  # layers are numbered from the start, so that rules always mean the same
        part = self.scenario(self.trainer.scenario)
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
        part.export(built, options.out, self.trainer, result={"imported_from": checkpoint.prefix})
        print(f"Wrote {options.out}")


def table(matches: "Matches", variables: list[Any]) -> str:
    """What matched, and what did not and why."""
    rows = [["checkpoint", "model", ""]]
    rows += [[item.name, variables[i].path, ""] for i, item in sorted(matches.found.items())]
    rows += [
        [item.name, variables[i].path, f"shape {item.shape}, the model has {tuple(variables[i].shape)}"]
        for item, i in matches.misfits
    ]
    rows += [["", variables[i].path, "not in the checkpoint"] for i in matches.missing]
    for item in matches.unused:
        both = item.full_name and item.full_name != item.name
        name = f"{item.name} ({item.full_name})" if both else item.name
        rows.append([name, "", f"not in the model {item.shape}"])
    skipped = f"\n({matches.left_out} counters and values of optimizers are skipped)" if matches.left_out else ""
    return text_table(rows) + skipped


def _rule(text: str) -> tuple[str, str]:
    from scena.backends.tensorflow.checkpoint_import import parse_rule

    try:
        return parse_rule(text)
    except ValueError as error:
        raise ParamsError(f"--map {text!r}: expected {error}.") from None
