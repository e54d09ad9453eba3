"""What can be set. Pure Python."""

from scena import (
    DataBaseParams,
    DataProcessorParams,
    ModelBaseParams,
    RowGeneratorParams,
    SequentialProcessorPipelineParams,
    param,
)


class CustomersParams(RowGeneratorParams):
    """Rows of CSV files, one for each customer."""

    files: list[str] = param(required=True, help="CSV files; `python -m examples.tabular.make customers` writes some")
    target_columns = ["left", "spent"]


class ParseParams(DataProcessorParams, builds=".data:Parse"):
    """Cells of a row as numbers; an empty cell is a missing value."""


class TabularDataParams(DataBaseParams, builds=".data:TabularData"):
    """A row in; whether the customer leaves and how much they spend out."""

    pre_proc = SequentialProcessorPipelineParams(processors=[ParseParams()])


class TabularModelParams(ModelBaseParams, builds=".model:TabularModel"):
    """Dense layers with two outputs."""

    units: list[int] = param([64, 64], ge=1, help="units of each hidden layer")
    leaving_weight: float = param(5.0, gt=0, help="how much more a customer who leaves counts in the loss")
    spent_weight: float = param(0.1, ge=0, help="weight of the error in euros in the sum of the losses")
