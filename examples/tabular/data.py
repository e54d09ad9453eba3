"""Rows of a table as tensors. Statistics of the columns are not computed here but learned from the training data: scenario.py."""

import math

from scena import ArraySpec, DataBase, MappingDataProcessor, Sample

from .params import ParseParams, TabularDataParams

NUMBERS = ["age", "income", "months"]
PLANS = ["free", "basic", "team"]


class Parse(MappingDataProcessor[ParseParams]):
    """Gets the cells of a row by column, from a file or from `scena serve`. A missing number becomes NaN."""

    def apply(self, sample: Sample) -> Sample:
        row = sample.inputs
        numbers = {column: math.nan if row[column] == "" else float(row[column]) for column in NUMBERS}
        targets = {column: float(text) for column, text in (sample.targets or {}).items()}  # none in a prediction
        parsed = sample.new_inputs({**numbers, "plan": str(row["plan"])}).new_targets(targets)
        return parsed.new_meta({"customer": row.get("customer", "")})


class TabularData(DataBase[TabularDataParams]):
    inputs = {**{column: ArraySpec((), "float32") for column in NUMBERS}, "plan": ArraySpec((), "str")}
    targets = {"left": ArraySpec((), "float32"), "spent": ArraySpec((), "float32")}
    allow_nan = True  # a missing number; the graph replaces it

    def describe_prediction(self, sample: Sample) -> str:
        outputs = sample.outputs
        return f"{sample.meta['customer']}: leaves with p = {outputs['leaves']:.2f}, spends {outputs['spends']:.2f}"
