"""What can be set. Pure Python."""

from scena import DataBaseParams, DataGeneratorParams, EvaluatorParams, ModelBaseParams, ScenarioBaseParams, param


class DatesParams(DataGeneratorParams, builds=".data:Dates"):
    """Dates as people write them, made on the spot."""

    count: int = param(8000, ge=1, help="number of dates to train on; a tenth of it to validate")


class TextsParams(DataGeneratorParams, builds=".data:Texts"):
    """Dates to read, given on the command line."""

    texts: list[str] = param(required=True, help="dates to normalise, for example '3 March 1998' '24.12.2001'")


class DatesDataParams(DataBaseParams, builds=".data:DatesData"):
    """A text in, year-month-day out, as numbers of characters."""


class DatesModelParams(ModelBaseParams, builds=".model:DatesModel"):
    """An encoder and a decoder with attention."""

    embedding: int = param(32, ge=1, help="size of a character's embedding")
    units: int = param(96, ge=1, help="units of encoder and decoder")


class DatesEvaluatorParams(EvaluatorParams, builds=".evaluator:ExactMatch"):
    """Exact matches."""


class DatesScenarioParams(ScenarioBaseParams[DatesDataParams, DatesModelParams]):
    """Normalising dates."""

    evaluator: DatesEvaluatorParams = param(flat=True, help="exact matches")
