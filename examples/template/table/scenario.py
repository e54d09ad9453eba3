"""What holds the parts together; `scena train` is given this."""

from typing import TYPE_CHECKING, Any

import numpy as np

from scena import Scenario, TrainValParams

from .params import TemplateDataParams, TemplateModelParams, TemplateSourceParams

if TYPE_CHECKING:
    from scena import BuiltModel


class TemplateScenario(Scenario[TemplateDataParams, TemplateModelParams, TrainValParams[TemplateSourceParams]]):
    """Predicts a column of a table. [Say here what your scenario does; --help shows it.]"""

    def graph_kwargs(self, data: Any) -> dict[str, Any]:
        """What the graph has to know about the data."""
        return {"texts": len(data.params.texts), "classes": len(data.params.classes)}

    def initialise(self, built: "BuiltModel", trainer_params: Any) -> None:
        """Learns means, variances and vocabularies from the training rows, before the first step."""
        with trainer_params.gen.train_data(built.data).stream(repeat=False) as batches:
            rows = [batch.inputs for batch in batches]
        numbers = np.concatenate([np.where(row["known"], row["numbers"], np.nan) for row in rows])
        graph: Any = built.root.graph
        graph.scale.adapt(np.where(np.isnan(numbers), np.nanmean(numbers, axis=0), numbers))
        texts = np.concatenate([row["texts"] for row in rows])
        for lookup, column in zip(graph.words, texts.T, strict=True):
            lookup.adapt(column)
