"""Rows of a table as tensors. Statistics of the columns are not computed here but learned from the training data: scenario.py."""

import numpy as np

from scena import ArraySpec, DataBase, MappingDataProcessor, Sample

from .params import ParseParams, TabularDataParams

NUMBERS = ["age", "income", "months"]
PLANS = ["free", "basic", "team"]


class Parse(MappingDataProcessor[ParseParams]):
    """A missing number is 0 and not `known`; the network sees both."""

    def apply(self, sample: Sample) -> Sample:
        row = sample.inputs
        known = np.array([row[column] != "" for column in NUMBERS])
        numbers = np.array([float(row[column] or 0) for column in NUMBERS])
        targets = {
            column: float(text) for column, text in sample.targets.items()
        }  # none when there is something to predict
        inputs = {"numbers": numbers, "known": known, "plan": row["plan"]}
        return sample.new_inputs(inputs).new_targets(targets).new_meta({"customer": row["customer"]})


class TabularData(DataBase[TabularDataParams]):
    inputs = {
        "numbers": ArraySpec((len(NUMBERS),), "float32"),
        "known": ArraySpec((len(NUMBERS),), "bool"),
        "plan": ArraySpec((), "str"),
    }
    targets = {"left": ArraySpec((), "float32"), "spent": ArraySpec((), "float32")}

    def describe_prediction(self, sample: Sample) -> str:
        outputs = sample.outputs
        return f"{sample.meta['customer']}: leaves with p = {outputs['leaves']:.2f}, spends {outputs['spends']:.2f}"
