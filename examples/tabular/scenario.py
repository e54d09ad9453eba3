"""Who leaves, and how much do they spend? Rows of a CSV file with missing values, two tasks and rare positives."""

from typing import TYPE_CHECKING, Any

import numpy as np

from scena import Scenario, ScenarioBaseParams, TrainerParams, TrainerPipelineParams

from .data import NUMBERS
from .params import CustomersParams, TabularDataParams, TabularModelParams

if TYPE_CHECKING:
    from scena import BuiltModel

Pipelines = TrainerPipelineParams[CustomersParams, CustomersParams]


class TabularScenario(Scenario[TabularDataParams, TabularModelParams, Pipelines]):
    """Predicts whether customers leave and how much they spend."""

    @classmethod
    def default_trainer_params(
        cls,
    ) -> TrainerParams[ScenarioBaseParams[TabularDataParams, TabularModelParams], Pipelines]:
        params = super().default_trainer_params()
        params.epochs, params.learning_rate.lr = 10, 0.003
        params.gen.train.batch_size, params.gen.val.batch_size = 64, 250
        return params

    def initialise(self, built: "BuiltModel", trainer_params: Any) -> None:
        """Learns mean and variance of the columns from the rows of the training that miss no number."""
        with trainer_params.gen.train_data(built.data).stream(repeat=False) as batches:
            rows = np.concatenate(
                [np.stack([batch.inputs[column] for column in NUMBERS], axis=-1) for batch in batches]
            )
        graph: Any = built.root.graph
        graph.scale.adapt(rows[~np.isnan(rows).any(axis=-1)])
