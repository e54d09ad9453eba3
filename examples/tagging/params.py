"""What can be set. Pure Python."""

from scena import (
    DataBaseParams,
    DataGeneratorParams,
    DataProcessorParams,
    EvaluatorParams,
    ModelBaseParams,
    PipelineMode,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    param,
)


class LinesParams(DataGeneratorParams, builds=".data:Lines"):
    """Lines of a bank statement, made on the spot."""

    count: int = param(3000, ge=1, help="number of lines to train on; a tenth of it to validate")


class TextsParams(DataGeneratorParams, builds=".data:Texts"):
    """Lines given on the command line."""

    texts: list[str] = param(required=True, help="lines to tag, for example 'sent 12.50 to mona on 3.11.'")


class CutPaddingParams(DataProcessorParams, builds=".data:CutPadding"):
    """Cuts what the model gives, and the targets, to the length of the line."""

    modes = {PipelineMode.EVALUATION, PipelineMode.PREDICTION}


class TaggingDataParams(DataBaseParams, builds=".data:TaggingData"):
    """Letters in, a tag for each letter out."""

    post_proc = SequentialProcessorPipelineParams(processors=[CutPaddingParams()])


class TaggingModelParams(ModelBaseParams, builds=".model:TaggingModel"):
    """Letters read in both directions."""

    embedding: int = param(16, ge=1, help="size of a letter's embedding")
    units: int = param(48, ge=1, help="units of each direction")


class FieldsParams(EvaluatorParams, builds=".evaluator:Fields"):
    """Whole fields."""


class TaggingScenarioParams(ScenarioBaseParams[TaggingDataParams, TaggingModelParams]):
    """Fields of a line."""

    evaluator: FieldsParams = param(flat=True, help="whole fields")
