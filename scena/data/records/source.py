"""Record files as a source of samples with random access."""

from typing import Any

from scena.data.errors import DataError
from scena.data.generator import RandomAccessGenerator
from scena.data.location import is_folder, located, only_here
from scena.data.modes import PipelineMode
from scena.data.records.params import RecordsParams
from scena.data.records.record_set import RecordSet, splits_of
from scena.data.sample import Sample

TRAINING_SPLITS = ("train", "training")
VALIDATION_SPLITS = ("validation", "val", "test", "train", "training")


def split_for(mode: PipelineMode, splits: dict[str, Any], where: str) -> str | None:
    """The split of a folder that a mode reads unless another one is named."""
    if len(splits) == 1:
        return next(iter(splits))
    for name in TRAINING_SPLITS if mode is PipelineMode.TRAINING else VALIDATION_SPLITS:
        if name in splits:
            return name
    raise DataError(
        f"{where} has the splits {', '.join(splits)}, none of which is meant for {mode.value}: name one (split)."
    )


class Records(RandomAccessGenerator[RecordsParams]):
    """Each record is a sample: inputs and targets are chosen from its features by name."""

    def __init__(self, params: RecordsParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        split, folder = params.split, located(params.records)
        if only_here(params.records):
            self.main_process = True  # type: ignore[misc]
        if split is None and is_folder(folder):
            split = split_for(mode, splits_of(folder), repr(params.records))
        self.records = RecordSet(params.records, split)
        self._inputs, self._targets = dict(params.input_keys), dict(params.target_keys)
        structure = self.records.schema.structure
        if not isinstance(structure, dict):
            if params.input_keys or params.target_keys:
                raise DataError(
                    f"The records of {params.records!r} are not named, so input_keys and target_keys cannot choose."
                )
            return
        chosen = {*self._inputs.values(), *self._targets.values()}
        unknown = sorted(chosen - set(structure))
        if unknown:
            raise DataError(
                f"The records of {params.records!r} have no {unknown[0]!r}; they have {', '.join(structure)}."
            )
        if not self._inputs:
            self._inputs = {name: name for name in structure if name not in self._targets.values()}

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Sample:
        value = self.records[index]
        if isinstance(value, dict):
            return Sample(
                inputs={name: value[key] for name, key in self._inputs.items()},
                targets={name: value[key] for name, key in self._targets.items()},
            )
        if isinstance(value, tuple) and len(value) == 2:  # (inputs, targets), as Keras takes data sets
            return Sample(inputs=value[0], targets=value[1])
        return Sample(inputs=value)
