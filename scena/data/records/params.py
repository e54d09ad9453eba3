"""Parameters of records as a source. Pure Python."""

from scena.data.params import DataGeneratorParams
from scena.params.declare import param


class RecordsParams(DataGeneratorParams, builds=".source:Records"):
    """TFRecord files, read by index: shuffled completely, and resumed at once."""

    records: str = param(required=True, help="a folder of record files, one file, or a pattern with *; also an address")
    split: str | None = param(
        None, help="which split of the folder; default: train to train on, validation or test to validate"
    )
    input_keys: dict[str, str] = param({}, help="input name: name of a feature; default: all that are not targets")
    target_keys: dict[str, str] = param({}, help="target name: name of a feature")
