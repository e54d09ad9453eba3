"""A scenario that tells classes of pictures apart, for tests of augmentation flags, preview and conversion."""

from typing import Any

from scena import GraphBase, ModelBase, ModelBaseParams, ScenarioBase, ScenarioBaseParams, param
from scena.data.image.params import ImageDataParams
from scena.training.pipelines import ImagePipelines


class PictureModelParams(ModelBaseParams, builds=":PictureModel"):
    """The number of classes."""

    n_classes: int = param(10, help="number of classes")


class PictureScenarioParams(ScenarioBaseParams[ImageDataParams, PictureModelParams]):
    """Pictures and their classes."""

    data: ImageDataParams = param(ImageDataParams(image_shape=[28, 28, 3]), flat=True, help="the data")


class PictureScenario(ScenarioBase[PictureScenarioParams, ImagePipelines]):
    """Tells classes of pictures apart."""


class PictureModel(ModelBase[PictureModelParams]):
    """Built when it is used, so that TensorFlow is not loaded before."""

    def create_graph(self) -> Any:
        import keras

        params = self.params

        class Graph(GraphBase[PictureModelParams]):
            def __init__(self, params: PictureModelParams, **kwargs: Any) -> None:
                super().__init__(params, **kwargs)
                self.layers_ = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(params.n_classes)])

            def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
                logits = self.layers_(inputs["image"] / 255)
                return {"logits": logits, "class": keras.ops.argmax(logits, -1)}

        return Graph(params)

    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        import keras

        return {
            "loss": keras.losses.sparse_categorical_crossentropy(targets["label"], outputs["logits"], from_logits=True)
        }

    def _metric(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        import keras

        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["label"], outputs["logits"])}
