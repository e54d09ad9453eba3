"""Parameters of a scenario: its data, its model, its evaluator."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scena.data.params import DataBaseParams
from scena.evaluation.params import EvaluatorParams
from scena.model.params import ModelBaseParams
from scena.params import Params, param

TData = TypeVar("TData", bound=DataBaseParams)
TModel = TypeVar("TModel", bound=ModelBaseParams)


class ScenarioBaseParams(Params, Generic[TData, TModel], abstract=True):
    """What is learned: data, model and evaluator."""

    data: TData = param(flat=True, help="the data: specs and processors")
    model: TModel = param(flat=True, help="the network, its losses and metrics")
    if TYPE_CHECKING:
        evaluator: Any = param()  # a scenario narrows it, which a checker forbids for an attribute that can be assigned
    else:
        evaluator: EvaluatorParams = param(flat=True, help="measures in Python on post-processed samples")
    debug_graph_construction: bool = param(
        False,
        help="before a training, run graph, losses and metrics once on real data, op by op, and report what they return",
    )
    print_eval_limit: int = param(10, ge=0, help="how many samples of a validation the model may print")
