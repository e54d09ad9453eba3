"""Rows of a CSV file as tensors."""

import math
import re
from typing import Any

from scena import ArraySpec, DataBase, DataError, MappingDataProcessor, RowGeneratorParams, Sample, SplitSource

from .params import ParseParams, TemplateDataParams, TemplateSourceParams


def input_name(column: str) -> str:
    """What the model calls a column: Keras wants names without spaces."""
    return re.sub(r"\W", "_", column)


class TemplateSource(SplitSource[TemplateSourceParams]):
    """Reads the file. [Read another format here.]"""

    def open(self) -> dict[str, int]:
        self.rows = RowGeneratorParams(files=[self.params.file], delimiter=self.params.delimiter).create(self.mode)
        return {"train" if self.mode.has_targets else "test": len(self.rows)}  # a prediction reads every row

    def title(self) -> str:
        return self.params.file

    def read(self, split: str, index: int) -> Sample:
        row: Sample = self.rows[index]
        return row


class Parse(MappingDataProcessor[ParseParams]):
    """Gets a row as a dict of strings by column, or of values when `scena serve` is asked. A missing number becomes NaN."""

    data_params: TemplateDataParams

    def apply(self, sample: Sample) -> Sample:
        row, columns = sample.inputs, self.data_params
        inputs: dict[str, Any] = {}
        for column in [*columns.numbers, *columns.texts]:
            name = input_name(column)
            cell = row.get(column, row.get(name))
            if cell is None:
                raise DataError(f"There is no column {column!r}; there are {', '.join(row)}. (Seen in {sample.meta}.)")
            inputs[name] = str(cell) if column in columns.texts else self.number(cell, column, sample.meta)
        parsed = sample.new_inputs(inputs)
        return parsed.new_targets({"class": self.class_of(row, sample.meta)}) if self.mode.has_targets else parsed

    def number(self, cell: Any, column: str, where: str) -> float:
        text = str(cell).strip()
        try:
            return math.nan if text in ("", *self.data_params.missing) else float(text)
        except ValueError:
            words = " ".join([*self.data_params.missing, repr(text)])
            hint = f"Is the column a text (--data.texts), or is the number missing (--data.missing {words})?"
            raise DataError(f"{where}: {column} is {text!r}, which is no number. {hint}") from None

    def class_of(self, row: dict[str, str], where: str) -> int:
        target, classes = self.data_params.target, self.data_params.classes
        if target not in row:
            raise DataError(
                f"There is no column {target!r} (--data.target); there are {', '.join(row)}. (Seen in {where}.)"
            )
        if row[target] not in classes:
            raise DataError(f"{where}: {target} is {row[target]!r}, which is none of {classes} (--data.classes).")
        return classes.index(row[target])


class TemplateData(DataBase[TemplateDataParams]):
    """Name, shape (without the batch) and type of inputs and targets."""

    targets = {"class": ArraySpec((), "int32")}
    allow_nan = True  # a missing number; the graph replaces it

    def input_specs(self) -> dict[str, ArraySpec]:
        numbers = {input_name(column): ArraySpec((), "float32") for column in self.params.numbers}
        return numbers | {input_name(column): ArraySpec((), "str") for column in self.params.texts}

    def describe(self, sample: Sample) -> str:
        """What `scena lav` and `scena predict` print; there are targets in a validation only."""
        pred, classes = sample.outputs["pred"], self.params.classes
        target = f", target {classes[sample.targets['class']]}" if sample.targets else ""
        return f"{sample.meta}: {classes[pred.argmax()]} (p = {pred.max():.2f}){target}"
