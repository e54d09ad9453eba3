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
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        size = len(NUMBERS)
        return {
            "numbers": ArraySpec((size,), "float32"),
            "known": ArraySpec((size,), "bool"),
            "plan": ArraySpec((), "str"),
        }

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"left": ArraySpec((), "float32"), "spent": ArraySpec((), "float32")}
