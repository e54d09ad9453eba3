"""Pictures with the names of their classes."""

from scena.data.image.database import ImageData

from .params import FlowersDataParams


class FlowersData(ImageData[FlowersDataParams]):
    """Input "image" and target "label". Decoding, augmentation and scaling are those of `ImageData`."""

    def name_of(self, label: int) -> str:
        """The name of a class."""
        return self.params.class_names[label]
