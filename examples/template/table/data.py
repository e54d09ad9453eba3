"""Rows of a CSV file as tensors."""

import numpy as np

from scena import ArraySpec, DataBase, DataError, MappingDataProcessor, RowGeneratorParams, Sample, SplitSource

from .params import ParseParams, TemplateDataParams, TemplateSourceParams


class TemplateSource(SplitSource[TemplateSourceParams]):
    """Reads the file. [Read another format here.]"""

    def open(self) -> dict[str, int]:
        self.rows = RowGeneratorParams(files=[self.params.file]).create(self.mode)
        return {"train" if self.mode.has_targets else "test": len(self.rows)}  # a prediction reads every row

    def title(self) -> str:
        return self.params.file

    def read(self, split: str, place: int) -> Sample:
        return self.rows[place]


class Parse(MappingDataProcessor[ParseParams]):
    """Gets a row as a dict of strings. A missing number is 0 and not `known`; the network sees both."""

    data_params: TemplateDataParams

    def apply(self, sample: Sample) -> Sample:
        row, columns = sample.inputs, self.data_params
        missing = [name for name in [*columns.numbers, *columns.texts] if name not in row]
        if missing:
            raise DataError(f"{sample.meta}: there is no column {missing[0]!r}; there are {', '.join(row)}.")
        known = np.array([row[name].strip() != "" for name in columns.numbers])
        numbers = np.array([float(row[name].strip() or 0) for name in columns.numbers], "float32")
        texts = np.array([row[name] for name in columns.texts], "str")
        parsed = sample.new_inputs({"numbers": numbers, "known": known, "texts": texts})
        return parsed.new_targets({"class": self.class_of(row, sample.meta)}) if self.mode.has_targets else parsed

    def class_of(self, row: dict[str, str], where: str) -> int:
        target, classes = self.data_params.target, self.data_params.classes
        if row.get(target) not in classes:
            raise DataError(f"{where}: {target} is {row.get(target)!r}, which is none of {classes} (--data.classes).")
        return classes.index(row[target])


class TemplateData(DataBase[TemplateDataParams]):
    """Name, shape (without the batch) and type of inputs and targets."""

    targets = {"class": ArraySpec((), "int32")}

    def input_specs(self) -> dict[str, ArraySpec]:
        numbers = (len(self.params.numbers),)
        return {
            "numbers": ArraySpec(numbers, "float32"),
            "known": ArraySpec(numbers, "bool"),
            "texts": ArraySpec((len(self.params.texts),), "str"),
        }

    def describe(self, sample: Sample) -> str:
        """What `scena lav` and `scena predict` print; there are targets in a validation only."""
        pred, classes = sample.outputs["pred"], self.params.classes
        target = f", target {classes[sample.targets['class']]}" if sample.targets else ""
        return f"{sample.meta}: {classes[pred.argmax()]} (p = {pred.max():.2f}){target}"
