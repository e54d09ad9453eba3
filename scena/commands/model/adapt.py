"""`scena adapt MODEL --out DIR`: the same weights with changed scenario parameters."""

from pathlib import Path

from scena.commands.model_command import ModelCommand, ModelOptions
from scena.commands.output import make_folder
from scena.params import Params, param, root_of
from scena.scenario.stored import refuse_existing


class AdaptOptions(ModelOptions):
    """Which model, and where the new one goes."""

    out: Path = param(required=True, help="the new export directory")


class Adapt(ModelCommand):
    """Writes a new export directory with the weights of a model and changed parameters of its scenario, for example other
    processors: scena adapt run/best --out other --data.…

    Refused if the changed model has weights of other shapes.
    """

    name = "adapt"
    options: AdaptOptions

    def root(self) -> Params:
        return root_of(scenario=self.exports[0].params.scenario)

    def run(self) -> None:
        refuse_existing(self.options.out)
        make_folder("--out", self.options.out.parent)
        self.start()
        from scena.prediction.converted import read_converted
        from scena.scenario.exporting import adapt

        adapt(self.exports[0], self.params.scenario, self.options.out)
        print(f"Wrote {self.options.out}")
        formats = {model.format for model in read_converted(self.exports[0].directory).values()}
        if formats:  # they were verified with the old parameters
            names = " ".join(sorted(formats))
            print(f"Converted models are not copied. Add them with: scena export {self.options.out} --format {names}")
