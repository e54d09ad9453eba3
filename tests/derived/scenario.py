"""The scenario with derived state: its layers are adapted in `initialise`."""

from typing import Any

import numpy as np

from scena import PipelineMode, ScenarioBase, TrainValParams

from .params import DerivedScenarioParams, RowsParams


class DerivedScenario(ScenarioBase[DerivedScenarioParams, TrainValParams[RowsParams]]):
    """Rows of numbers and words."""

    def initialise(self, built: Any, trainer_params: Any) -> None:
        from .data import Rows

        if not self.params.model.adapt:
            return
        rows = Rows(trainer_params.gen.train_gen(), PipelineMode.TRAINING)
        samples = [rows[index] for index in range(len(rows))]
        names = samples[0].inputs
        data = {name: np.stack([sample.inputs[name] for sample in samples]) for name in names}
        built.root.graph.adapt(data)
        if built.root.graph.forgetful is not None:
            built.root.graph.forgetful.factor = 3.0
