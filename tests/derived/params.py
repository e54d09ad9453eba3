"""Parameters of the scenario with derived state."""

from scena import DataBaseParams, DataGeneratorParams, ModelBaseParams, ScenarioBaseParams, param

NUMBERS = ("normalization", "given", "discretization", "integer", "quantized", "float8", "whitening", "cached")
WORDS = ("string", "text", "tf_idf", "synonyms")


class RowsParams(DataGeneratorParams, builds=".data:Rows"):
    """Rows of a table."""

    count: int = param(48, ge=1, help="number of rows")
    seconds: float = param(0.0, ge=0, help="time that a row takes")


class DerivedDataParams(DataBaseParams, builds=".data:DerivedData"):
    """Numbers, codes and, if asked for, words."""

    words: bool = param(True, help="whether rows have words")


class DerivedModelParams(ModelBaseParams, builds=".model:DerivedModel"):
    """A layer of each kind."""

    kinds: list[str] = param([*NUMBERS, *WORDS], help="which layers to use")
    adapt: bool = param(True, help="adapt them to the training data; else they stay as they are made")
    dropout: float = param(0.2, ge=0, lt=1, help="share of features switched off")
    forgetful: bool = param(False, help="add a layer that keeps something and has no hooks")


class DerivedScenarioParams(ScenarioBaseParams[DerivedDataParams, DerivedModelParams]):
    """The scenario with derived state."""
