"""Two sources of different kinds, a data set to learn from and files to predict, and what the network gets of both."""

from scena import ArraySpec, DataBase, PipelineMode, RandomAccessGenerator, Sample
from scena.data.sources.digits import load_digits

from .params import DigitsParams, ImageFilesParams, TutorialDataParams


class Digits(RandomAccessGenerator[DigitsParams]):
    """Pictures and their classes from a data set."""

    def __init__(self, params: DigitsParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.images, self.labels = load_digits(params.dataset, "train" if mode == PipelineMode.TRAINING else "test")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs={"img": self.images[index]}, targets={"gt": self.labels[index]})


class ImageFiles(RandomAccessGenerator[ImageFilesParams]):
    """The names of picture files; the processor `LoadImage` reads them."""

    def __len__(self) -> int:
        return len(self.params.image_files)

    def __getitem__(self, index: int) -> Sample:
        path = self.params.image_files[index]
        return Sample(inputs=path, meta={"file": str(path)})


class TutorialData(DataBase[TutorialDataParams]):
    """Names, shapes and types."""

    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"img": ArraySpec((28, 28), "uint8")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"gt": ArraySpec((), "uint8")}
