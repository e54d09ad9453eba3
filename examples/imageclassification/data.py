"""Pictures with the names of their classes, and picture files to predict."""

from scena import RandomAccessGenerator, Sample
from scena.data.image.database import ImageData

from .params import FlowersDataParams, PhotographsParams


class FlowersData(ImageData[FlowersDataParams]):
    """Input "image" and target "label". Decoding, augmentation and scaling are those of `ImageData`."""

    def name_of(self, label: int) -> str:
        """The name of a class."""
        return self.params.class_names[label]


class Photographs(RandomAccessGenerator[PhotographsParams]):
    """Reads picture files."""

    def __len__(self) -> int:
        return len(self.params.image_files)

    def __getitem__(self, index: int) -> Sample:
        path = self.params.image_files[index]
        return Sample(inputs={"image": path.read_bytes()}, meta={"name": str(path)})
