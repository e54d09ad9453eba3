"""The data of image classification."""

from scena.data.image.database import ImageData
from scena.scenario.classification.params import ClassificationDataParams


class ClassificationData(ImageData[ClassificationDataParams]):
    """Pictures of the model's input size, with names for their classes."""

    def name_of(self, label: int) -> str:
        """The name of a class, or its number where the data set has no names."""
        names = self.params.class_names
        return names[label] if label < len(names) else str(label)
