"""The scenario `classification`: any network of the zoo on any images."""

import logging
from typing import TYPE_CHECKING, Any

from scena.data.params import PipelineMode
from scena.data.resource import Resource
from scena.errors import ScenarioError
from scena.scenario.classification.params import (
    HUB,
    ClassificationPipelines,
    ClassificationScenarioParams,
    ImagePathsParams,
)
from scena.scenario.scenario import ScenarioBase
from scena.training.params import TrainerParams

if TYPE_CHECKING:
    from scena.model.built import BuiltModel
    from scena.training.trainer import Trainer

logger = logging.getLogger(__name__)


class ClassificationScenario(ScenarioBase[ClassificationScenarioParams, ClassificationPipelines]):
    """Image classification with a network of the zoo (`scena zoo` lists them)."""

    predict_source = ImagePathsParams

    @classmethod
    def create_trainer(cls, params: TrainerParams[ClassificationScenarioParams, ClassificationPipelines]) -> "Trainer":
        """A trainer whose number of classes, and their names, are those of the data set, unless they are set."""
        cls.check_params(params)
        source: Any = params.gen.train_gen().create(PipelineMode.TRAINING)
        names = _names_of(source, params.scenario.data.class_names)
        network = params.scenario.model.network
        if not network.num_classes and not names:
            raise ScenarioError(f"{source.title()} does not say how many classes it has; give --model.num_classes.")
        if names and network.num_classes and network.num_classes < len(names):
            raise ScenarioError(
                f"{source.title()} has {len(names)} classes; --model.num_classes {network.num_classes} is less than that."
            )
        network.num_classes = network.num_classes or len(names)
        network.max_momentum = network.max_momentum or _max_momentum(len(source), params)
        params.scenario.data.class_names = names
        params.scenario.data.image_shape = list(network.input_size)
        params.scenario.data.any_size = bool(params.gen.train.sizes)
        if network.name == HUB and network.files is None:
            from scena.model.hub.inspect import resolve_handle

            network.files = Resource(resolve_handle(str(network.handle)))
        return super().create_trainer(params)

    def initialise(self, built: "BuiltModel", trainer_params: Any) -> None:
        """Loads the first weights that were asked for, and tries the smaller images of the first epochs."""
        from scena.scenario.classification.model import check_sizes, load_weights

        pipelines: ClassificationPipelines = trainer_params.gen
        check_sizes(built.root.graph.network, self.params.model.network, pipelines.train.sizes)
        if self.params.model.network.weights is not None:
            load_weights(built.root.graph.network, self.params.model.network, pipelines)
            import keras

            # what was built to read the weights must not change what follows
            keras.utils.set_random_seed(trainer_params.random_seed or 0)

    def evaluator_kwargs(self, data: Any) -> dict[str, Any]:
        return {"names": data.params.class_names}


def _names_of(source: Any, stored: list[str]) -> list[str]:
    """The names of the classes: those of the data set, or of a run that is resumed and had classes that are gone."""
    names = list(source.classes or [])
    if stored and names != stored:
        if set(names) < set(stored):
            return stored
        logger.warning(
            "%s has the classes %s, and the parameters were stored for %s; labels are numbered as in the former.",
            source.title(), ", ".join(names[:10]), ", ".join(stored[:10]),
        )  # fmt: skip
    return names


def _max_momentum(samples: int, params: TrainerParams[ClassificationScenarioParams, ClassificationPipelines]) -> float:
    """Batch normalization averages over an epoch at most (and over ten steps at least): with the networks' own momentum, which suits
    millions of images, the first hundreds of steps would be validated with averages that are still far off.
    """
    steps = (params.samples_per_epoch or samples) // params.gen.train.batch_size
    return max(0.9, 1 - 1 / max(1, steps))
