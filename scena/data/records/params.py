"""Parameters of records as a source. Pure Python."""

from scena.data.params import DataGeneratorParams
from scena.data.sources.params import SplitSourceParams
from scena.params.declare import param


class RecordsParams(SplitSourceParams, builds=".source:Records", stands_in_for=DataGeneratorParams):
    """TFRecord files, read by index: what `scena records convert` wrote comes back as the same samples."""

    records: str = param(required=True, help="a folder of record files, one file, or a pattern with *; also an address")
    input_keys: dict[str, str] = param({}, help="input name: name of a feature; default: all that are not targets")
    target_keys: dict[str, str] = param({}, help="target name: name of a feature")
