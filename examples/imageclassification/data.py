"""Images with the names of their classes."""

from scena import Sample
from scena.data.image import ImageData

from .params import FlowersDataParams


class FlowersData(ImageData[FlowersDataParams]):
    """Input "image" and target "label". Decoding, augmentation and scaling are those of `ImageData`."""

    def name_of(self, label: int) -> str:
        """The name of a class."""
        return self.params.class_names[label]

    def describe(self, sample: Sample) -> str:
        label = int(sample.outputs["class"])
        text = f"{sample.meta['name']}: most likely {self.name_of(label)} with {sample.outputs['pred'][label]:.1%}"
        return f"{text}, and it is {self.name_of(int(sample.targets['label']))}" if sample.targets else text
