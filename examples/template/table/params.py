"""What can be set. Keep this file free of numpy, Keras and TensorFlow: `--help` reads it."""

from scena import (
    DataBaseParams,
    DataProcessorParams,
    EvaluatorParams,
    ModelBaseParams,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    SplitSourceParams,
    param,
)


class TemplateSourceParams(SplitSourceParams, builds=".data:TemplateSource"):
    """Rows of a CSV file. A seeded tenth of them is kept for validation."""

    file: str = param(required=True, help="a CSV file with a header line")
    delimiter: str | None = param(None, help="what separates columns; default: a tab in .tsv files, else a comma")


class ParseParams(DataProcessorParams, builds=".data:Parse"):
    """Turns the cells of a row into numbers."""


class TemplateDataParams(DataBaseParams, builds=".data:TemplateData"):
    """The columns. [Name those of your own table here.]"""

    numbers: list[str] = param(["height", "width"], help="columns that hold numbers")
    missing: list[str] = param(["NA", "null"], help="what means, besides an empty cell, that a number is missing")
    texts: list[str] = param(["place"], help="columns that hold one of a few words")
    target: str = param("kind", help="the column to predict")
    classes: list[str] = param(["fern", "moss", "reed"], help="the values of that column")
    pre_proc = SequentialProcessorPipelineParams(processors=[ParseParams()])

    def __post_init__(self) -> None:
        for column in [*self.numbers, *self.texts]:
            if column == self.target:
                raise ValueError(f"{column!r} is the target: a model that also reads it would only copy it")
            if column in self.numbers and column in self.texts:
                raise ValueError(f"{column!r} stands in numbers and in texts; name it once")


class TemplateModelParams(ModelBaseParams, builds=".model:TemplateModel"):
    """The network. [Add what you want to change on the command line.]"""

    units: list[int] = param([64, 64], gt=0, help="units of each hidden layer")
    words: int = param(1000, ge=2, help="the most words a column of texts may have; the rarest beyond that are unknown")
    dropout: float = param(0.1, ge=0, lt=1, help="share of units to drop in training")


class TemplateEvaluatorParams(EvaluatorParams, builds=".evaluator:TemplateEvaluator"):
    """Names of classes, measures in Python."""


class TemplateScenarioParams(ScenarioBaseParams[TemplateDataParams, TemplateModelParams]):
    """The scenario's parameters."""

    evaluator: TemplateEvaluatorParams = param(flat=True, help="names of classes, measures in Python")
