"""What can be set. Pure Python."""

from pathlib import Path

from scena import (
    DataBaseParams,
    DataGeneratorParams,
    DataPipelineParams,
    DataProcessorParams,
    EvaluatorParams,
    ModelBaseParams,
    Params,
    PipelineMode,
    Resource,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    TrainerPipelineParams,
    param,
)

HERE = Path(__file__).parent


class LineSourceParams(DataGeneratorParams, abstract=True):
    """Where text lines come from: Rendered or LineFiles."""


class RenderedParams(LineSourceParams, builds=".rendering:RenderedLines"):
    """Lines of made-up text, rendered on the spot with the fonts that come with matplotlib."""

    count: int = param(8000, ge=1, help="number of lines to train on; a twentieth of it to validate")
    noise: float = param(12.0, ge=0, help="strength of the noise, in grey levels")
    blur: float = param(0.8, ge=0, help="largest radius of the blur, in pixels")
    slant: float = param(0.25, ge=0, help="largest slant, sideways per height")


class LineFilesParams(LineSourceParams, builds=".data:LineFiles"):
    """Images of lines, each with its text in NAME.gt.txt beside it."""

    image_files: list[Path] = param([], help="the images")
    lists: list[Path] = param([], help="text files that name an image in each line, relative to their folder")


class LoadLineParams(DataProcessorParams, builds=".processors:LoadLine"):
    """Reads an image and its text."""


class ScaleLineParams(DataProcessorParams, builds=".processors:ScaleLine"):
    """Scales a line to its height, and encodes the text."""


class DecodeTextParams(DataProcessorParams, builds=".processors:DecodeText"):
    """Makes text of what the network wrote."""


class AtrDataParams(DataBaseParams, builds=".data:AtrData"):
    """Lines of any width and their text."""

    line_height: int = param(32, ge=8, help="height that lines are scaled to")
    codec: Resource = param(Resource(HERE / "codec.txt"), help="a text file with all characters, in one line")
    pre_proc = SequentialProcessorPipelineParams(processors=[LoadLineParams(), ScaleLineParams()])
    post_proc = SequentialProcessorPipelineParams(
        processors=[DecodeTextParams(modes={PipelineMode.EVALUATION, PipelineMode.PREDICTION})]
    )


class DecoderParams(Params, abstract=True):
    """How text is read from the network's output."""


class Greedy(DecoderParams):
    """The most likely character at each place."""


class Beam(DecoderParams):
    """The most likely text among several that are followed."""

    width: int = param(10, ge=1, help="how many texts are followed")


class AtrModelParams(ModelBaseParams, builds=".model:AtrModel"):
    """Convolutions, a bidirectional LSTM and CTC."""

    filters: list[int] = param([16, 32], gt=0, help="filters of each convolution; each is followed by pooling")
    lstm: int = param(64, ge=1, help="units of the LSTM in each direction")
    dropout: float = param(0.2, ge=0, lt=1, help="share of features to drop in training")
    decoder: DecoderParams = param(Greedy(), help="how text is read from the output")


class AtrEvaluatorParams(EvaluatorParams, builds=".evaluator:CharacterErrors"):
    """Character error rate."""


class AtrScenarioParams(ScenarioBaseParams[AtrDataParams, AtrModelParams]):
    """Text recognition."""

    evaluator: AtrEvaluatorParams = param(flat=True, help="character error rate")


class AtrPipelines(TrainerPipelineParams[LineSourceParams, LineSourceParams]):
    """Where lines for training and validation come from; lines of similar width go into one batch."""

    train: DataPipelineParams = param(
        DataPipelineParams(batch_size=16, bucket_boundaries=[160, 240, 320]),
        flat=True,
        help="how training batches are made",
    )
    val: DataPipelineParams = param(
        DataPipelineParams(batch_size=32), flat=True, help="how validation batches are made"
    )
    train_source: LineSourceParams = param(RenderedParams(), flat="train", help="lines to train on")
    val_source: LineSourceParams = param(RenderedParams(), flat="val", help="lines to validate on")
