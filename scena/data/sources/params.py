"""Parameters of the ready-made sources, and a way to open one before anything heavy is loaded. Pure Python."""

from pathlib import Path
from typing import Any, Self

from scena.data.image.params import SPLIT_HELP, ImagePlacesParams
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.errors import ParamsError
from scena.params.declare import complete_repr, param
from scena.storage.location import Location


class SplitSourceParams(DataGeneratorParams, abstract=True):
    """A data set with splits."""

    split: str | None = param(None, help=SPLIT_HELP)
    split_seed: int = param(0, ge=0, lt=2**32, help="seed of that tenth")
    sides: list[str] = param([], hidden=True, help="in a training: what it and its validation read of which data set")
    model_classes: list[str] = param(
        [], hidden=True, help="the classes of the model, by whose names labels are numbered"
    )

    def shared(self, mode: PipelineMode, train: str | None, validation: str | None) -> Self:
        """One side of a training, which knows what both sides read."""
        split = train if mode is PipelineMode.TRAINING else validation
        return self.replace(split=split, sides=[train or "", validation or "", self._identity()])

    def for_training(self) -> Self:
        """The split that was named, or what it is by default."""
        return self.shared(PipelineMode.TRAINING, self.split, None)

    def for_validation(self) -> Self:
        """What is validated on by default, without what the training reads."""
        return self.shared(PipelineMode.EVALUATION, self.split, None)

    def known_sides(self) -> tuple[str, str] | None:
        """What the training and its validation read. For a split that is named, only the very data set of the training counts."""
        if not self.sides or (self.split is not None and self.sides[2] != self._identity()):
            return None
        return self.sides[0], self.sides[1]

    def beside(self, validated: DataGeneratorParams | None) -> Self:
        """This source in a command that was given it in place of what a training validated on."""
        if self.sides or validated is None:
            return self
        if not isinstance(validated, SplitSourceParams):
            return self.replace(sides=["", "", ""])
        if not validated.sides and validated._identity() == self._identity():
            return self
        return self.replace(sides=validated.sides or ["", "", validated._identity()])

    @property
    def is_other_data(self) -> bool:
        """Whether this is another data set than that of the training, so that none of it has been trained on."""
        return bool(self.sides) and self.sides[2] != self._identity()

    def _identity(self) -> str:
        return complete_repr(self.replace(split=None, split_seed=0, sides=[], model_classes=[]))


class NamedDataSetParams(SplitSourceParams, builds=".named:NamedDataSet"):
    """A data set by its name: of TensorFlow Datasets, of Keras, or embedded (digits)."""

    dataset: str = param(required=True, help="for example digits, cifar10, tfds:glue/mrpc or keras:mnist")
    data_dir: Path | None = param(None, help="where TensorFlow Datasets keeps its data; default: ~/tensorflow_datasets")


class ImageFilesParams(ImagePlacesParams, SplitSourceParams, builds=".images:ImageFileSource"):
    """Image files: a folder for each class, or folders train, validation, … with those, or a table."""


class ImageArraysParams(SplitSourceParams, builds=".images:ImageArrays"):
    """Images in an array of .npy, .npz or HDF5 files, and an array of the numbers of their classes."""

    images: str = param(
        required=True, help="FILE.npy, FILE.npz:ARRAY or FILE.h5:ARRAY; samples, height, width[, channels]"
    )
    labels: str = param(required=True, help="the same for the classes: whole numbers from 0")


class ImageRecordsParams(SplitSourceParams, builds=".records:ImageRecords"):
    """Image records, as `scena records write` makes them."""

    records: Location = param(
        required=True, help="a folder of record files, a file, or a pattern with *; also an address"
    )
    image_key: str = param("image", help="the feature with the encoded image")
    label_key: str = param("label", help="the feature with the label")


class ListFileGeneratorParams(DataGeneratorParams, builds=".text_files:ListFileGenerator"):
    """Lines of text files, each the name of a sample (a file, most often)."""

    lists: list[str] = param([], help="text files with one sample per line")
    list_ratios: list[float] = param([], help="training: how often each list is drawn from; default: each line once")
    ignore_prefix: str = param("#", help="lines that start with this are skipped")

    def __post_init__(self) -> None:
        ratios = self.list_ratios
        if ratios and len(ratios) != len(self.lists):
            raise ParamsError(f"list_ratios needs a number for each of the {len(self.lists)} lists. Received: {ratios}")
        if any(ratio < 0 for ratio in ratios) or (ratios and not sum(ratios)):
            raise ParamsError(f"list_ratios must not be negative, nor all zero. Received: {ratios}")

    def parts(self) -> dict[str, DataGeneratorParams]:
        if len(self.lists) < 2:
            return {"": self}
        stems = [Path(name).stem for name in self.lists]
        names = stems if len(set(stems)) == len(stems) else self.lists
        return {name: self.replace(lists=[path], list_ratios=[]) for name, path in zip(names, self.lists, strict=True)}


class RowGeneratorParams(DataGeneratorParams, builds=".text_files:RowGenerator"):
    """Rows of CSV or TSV files with a header line; each row is a dict by column name."""

    files: list[str] = param([], help="CSV or TSV files with a header line")
    delimiter: str | None = param(None, help="what separates columns; default: a tab in .tsv files, else a comma")
    input_columns: list[str] = param([], help="columns of the inputs; default: all that are not targets")
    target_columns: list[str] = param([], help="columns of the targets")

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ParamsError(f"delimiter is one character, such as ; or a tab. Received: {self.delimiter!r}")


class ArrayGeneratorParams(DataGeneratorParams, builds=".arrays:ArrayGenerator"):
    """Rows of arrays in .npy, .npz or HDF5 files; the first axis counts samples."""

    inputs: dict[str, str] = param({}, help="input name: file.npy, file.npz:array or file.h5:array")
    targets: dict[str, str] = param({}, help="target name: file.npy, file.npz:array or file.h5:array")


class RecordsParams(SplitSourceParams, builds=".records:Records", stands_in_for=DataGeneratorParams):
    """TFRecord files, read by index: what `scena records convert` wrote comes back as the same samples."""

    records: str = param(required=True, help="a folder of record files, one file, or a pattern with *; also an address")
    input_keys: dict[str, str] = param({}, help="input name: name of a feature; default: all that are not targets")
    target_keys: dict[str, str] = param({}, help="target name: name of a feature")


EMBEDDED = ("digits",)
"""Named data sets that need no TensorFlow."""


def try_source(source: Any, mode: PipelineMode) -> None:
    """Opens and closes one of Scena's own sources, so that its errors are raised before anything heavy is loaded.

    Skips remote sources, which may take long, sources that need TensorFlow, and those of the user, except for list
    files. Of tables it reads the headers only.
    """
    import logging  # --help does not need it

    from scena.storage.location import protocol_of

    if not isinstance(source, DataGeneratorParams) or any(protocol_of(text) for text in _texts(source)):
        return
    if isinstance(source, NamedDataSetParams) and source.dataset not in EMBEDDED:
        return
    own = (type(source).__builds__ or "").startswith("scena.data.")
    if isinstance(source, ListFileGeneratorParams):
        from scena.data.sources.text_files import ListFileGenerator

        ListFileGenerator(source, mode)
    elif own and isinstance(source, RowGeneratorParams):
        from scena.data.sources.text_files import check_tables

        check_tables(source, mode)
    elif own and isinstance(source, SplitSourceParams):
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)  # the command opens it again, and then says the same
        try:
            source.create(mode)
        finally:
            logging.disable(before)


def _texts(source: DataGeneratorParams) -> list[str]:
    values = [getattr(source, name) for name in type(source).__params__]
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [str(item) for item in items if isinstance(item, str) or hasattr(item, "__fspath__")]
