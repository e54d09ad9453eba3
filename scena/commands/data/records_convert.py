"""`scena records convert SCENARIO | MODULE:DATASET | --dataset NAME`: samples as record files."""

import contextlib
import re
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

from scena.commands.command import Command, ImportOptions
from scena.display import counting
from scena.params import Params, ParamsError, param, root_of
from scena.scenario.finding import find_object, find_scenario
from scena.storage.location import Location


class ConvertOptions(ImportOptions):
    """What to write, and where."""

    source: str | None = param(
        None,
        positional="SCENARIO",
        help="a scenario, or MODULE:NAME of a tf.data.Dataset of your own; or use --dataset",
    )
    output: Location = param(required=True, help="the folder, or the address, to write the data set to")
    dataset: str | None = param(
        None, help="a data set by its name, instead of a scenario: digits, cifar10, tfds:NAME, keras:NAME"
    )
    data_dir: Path | None = param(None, help="with dataset: where TensorFlow Datasets keeps its data")
    splits: list[str] = param([], help="which splits; default: all of a data set, train and validation of a scenario")
    shards: int = param(1, ge=1, help="files for each split")
    shard: str | None = param(None, help="i/n: write file i of n only, as one of n jobs")
    compression: str = param("", choices=["", "GZIP", "ZLIB"], help="compress the files")
    variable_shapes: bool = param(False, help="arrays differ in size from sample to sample (beyond the first 100)")
    force: bool = param(False, help="replace files that are there")


class RecordsConvert(Command):
    """Writes the samples of a scenario (as its generators give them), a tf.data.Dataset of your own (MODULE:NAME), or a data set by
    its name, as TFRecord files.
    """

    name = "records convert"
    options: ConvertOptions

    @cached_property
    def own(self) -> Any:
        """The object that MODULE:NAME is, unless it is a scenario."""
        source = self.options.source
        return find_object(source) if source is not None and ":" in source else None

    def root(self) -> Params | None:
        if self.options.source is None or self.own is not None:
            return None
        return root_of(trainer=find_scenario(self.options.source).default_trainer_params())

    def read(self, words: list[str]) -> None:
        if (self.options.source is None) == (self.options.dataset is None):
            before = f" before {words[0]}" if words else ""
            raise ParamsError(
                f"name a scenario{before} (scena records convert SCENARIO …) or a data set (--dataset NAME)."
            )
        if words and self.root() is None:
            what = "--dataset" if self.options.source is None else "MODULE:NAME"
            raise ParamsError(
                f"{words[0]} is not a flag of scena records convert {what}. See scena records convert --help."
            )
        super().read(words)

    def run(self) -> None:
        options = self.options
        self.show_log()
        if options.source is None:
            sources = _of_dataset(options)
        elif self.own is not None:
            sources = _of_module(options.source, self.own, options)
        else:
            sources = _of_scenario(self.params.trainer.gen, options)
        _write(sources, options)


def _of_scenario(gen: Any, options: ConvertOptions) -> dict[str, Any]:
    from scena.data.generator import as_generator
    from scena.data.params import PipelineMode

    sources = {
        "train": (gen.train_gen(), PipelineMode.TRAINING),
        "validation": (gen.val_gen(), PipelineMode.EVALUATION),
    }
    chosen = options.splits or [split for split, (source, _) in sources.items() if source is not None]
    unknown = [split for split in chosen if split not in sources or sources[split][0] is None]
    if unknown:
        raise ParamsError(
            f"a scenario has the splits train and validation (where it validates). Received: {unknown[0]!r}"
        )
    return {split: as_generator(*sources[split]) for split in chosen}


def _of_module(name: str, value: Any, options: ConvertOptions) -> dict[str, Any]:
    """The data sets that an object of the user's own module is, returns, or holds by split."""
    from scena.errors import DataError
    from scena.user_code import reason, user_line

    if callable(value) and not hasattr(value, "element_spec"):
        try:
            value = value()
        except Exception as error:  # the user's own code; it is called without arguments
            place = user_line(error)
            raise DataError(f"{name}() fails{f' at {place}' if place is not None else ''}: {reason(error)}.") from error
    single = not isinstance(value, dict)
    if single and len(options.splits) > 1:
        raise ParamsError(f"{name} is one data set: --splits may give it one name. Received: {options.splits}")
    found = {(options.splits or ["data"])[0]: value} if single else value
    strange = [value for value in found.values() if not hasattr(value, "element_spec")]
    if strange or not found:
        received = type(strange[0]).__name__ if strange else "nothing"
        raise DataError(
            f"{name} must be a tf.data.Dataset, a function that returns one, or a dict of them by split. Received: {received}."
        )
    unknown = [split for split in options.splits if split not in found]
    if unknown:
        raise ParamsError(f"{name} has the splits {', '.join(found)}. Received: {unknown[0]!r}")
    return {str(split): found[split] for split in options.splits or found}


def _of_dataset(options: ConvertOptions) -> dict[str, Any]:
    from scena.data.params import PipelineMode
    from scena.data.sources.named import NamedDataSet
    from scena.data.sources.params import NamedDataSetParams

    params = NamedDataSetParams(dataset=str(options.dataset), data_dir=options.data_dir)
    splits = options.splits or list(NamedDataSet(params, PipelineMode.TRAINING).counts)
    return {split: NamedDataSet(params.replace(split=split), PipelineMode.EVALUATION) for split in splits}


def _write(sources: dict[str, Any], options: ConvertOptions) -> None:
    """A new data set appears as a whole; to a folder that is there already, splits are added one by one."""
    from scena.data.records.writing import parse_shard, unwritable
    from scena.storage.durable import replace_directory
    from scena.storage.location import is_remote, located

    shard = parse_shard(options.shard) if options.shard else None
    folder = located(options.output)
    written: dict[str, int] = {}
    if shard is None and not is_remote(folder) and not folder.exists():
        try:
            folder.with_name(f".{folder.name}.new").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from None
        replace_directory(folder, lambda aside: _write_splits(sources, None, options, Location(aside), written))
    else:
        _write_splits(sources, shard, options, options.output, written)
    for split, count in written.items():
        print(f"wrote {count:,} records of {split} into {options.output}")


def _write_splits(
    sources: dict[str, Any],
    shard: tuple[int, int] | None,
    options: ConvertOptions,
    output: Location,
    written: dict[str, int],
) -> None:
    from scena.data.records.record_set import splits_of
    from scena.errors import DataError
    from scena.storage.location import located

    try:
        for split, source in sources.items():
            written[split] = _write_split(split, source, shard, options, output)
    except BaseException:
        if written and output is options.output:
            missing = [split for split in sources if split not in written]
            print(f"{output} is not complete: it holds {', '.join(written)}, but not {', '.join(missing)}")
        raise
    complete = shard is None
    with contextlib.suppress(DataError):  # other jobs have not written their files yet
        complete = complete or bool(splits_of(located(output)))
    if complete:
        _write_info(sources, output)


def _write_split(
    split: str, source: Any, shard: tuple[int, int] | None, options: ConvertOptions, output: Location
) -> int:
    name = split.replace("[", "_").replace("]", "").replace(":", "-").replace("%", "")
    how: dict[str, Any] = {
        "split": name,
        "shards": options.shards,
        "shard": shard,
        "compression": options.compression,
        "overwrite": options.force,
    }
    if hasattr(source, "element_spec"):
        import tensorflow as tf

        from scena.data.tensorflow.records import dataset_to_tfrecord
        from scena.errors import DataError

        try:
            return dataset_to_tfrecord(source, output, **how)
        except tf.errors.OpError as error:  # the user's own code, within TensorFlow
            first = re.sub(r"\{\{.*?\}\}\s*", "", error.message).strip().partition("\n")[0]
            raise DataError(f"The data set for {split!r} fails: {first}") from error
    from scena.data.records.convert import write_source

    total = len(source) if hasattr(source, "__len__") else None
    with counting(f"writing {split}", -(-total // shard[1]) if total and shard else total) as progress:
        return write_source(source, output, variable_shapes=options.variable_shapes, progress=progress, **how)


def _write_info(sources: dict[str, Any], output: Location) -> None:
    """The info file of a data set of images, so that names of classes and statistics are known."""
    from scena.data.image.statistics import INFO_FILE
    from scena.data.records.describe import collect_info
    from scena.data.records.writing import write_json
    from scena.storage.location import is_remote, located, send_folder

    classes = next((source.classes for source in sources.values() if getattr(source, "classes", None)), None)
    folder = located(output)
    info = collect_info(folder, classes)
    if info is None:
        return
    if not is_remote(folder):
        write_json(folder / INFO_FILE, info)
        return
    with tempfile.TemporaryDirectory() as here:
        write_json(Path(here) / INFO_FILE, info)
        send_folder(Path(here), folder)
