"""What holds the parts together; `scena train` is given this."""

from typing import TYPE_CHECKING, Any

import numpy as np

from scena import ScenarioBase, TrainValParams

from .params import TemplateScenarioParams, TemplateSourceParams

if TYPE_CHECKING:
    from scena import BuiltModel


class TemplateScenario(ScenarioBase[TemplateScenarioParams, TrainValParams[TemplateSourceParams]]):
    """Predicts a column of a table."""  # [Say here what your scenario does: --help and reports show it.]

    def graph_kwargs(self, data: Any) -> dict[str, Any]:
        """What the graph has to know about the data."""
        return {"columns": data.params}

    def evaluator_kwargs(self, data: Any) -> dict[str, Any]:
        return {"classes": data.params.classes}

    def initialise(self, built: "BuiltModel", trainer_params: Any) -> None:
        """Learns means, variances and vocabularies from the training rows, before the first step."""
        with trainer_params.gen.train_data(built.data).stream(repeat=False) as batches:
            rows = [batch.inputs for batch in batches]
        graph: Any = built.root.graph
        numbers = np.stack([np.concatenate([row[name] for row in rows]) for name in graph.numbers], axis=-1)
        graph.scale.adapt(np.where(np.isnan(numbers), np.nanmean(numbers, axis=0), numbers))
        for name, lookup in zip(graph.texts, graph.words, strict=True):
            lookup.adapt(np.concatenate([row[name] for row in rows]))
