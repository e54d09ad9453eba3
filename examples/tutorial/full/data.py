"""Two sources, a data set to learn from and files to predict; what the network gets of both; how a prediction is printed."""

from scena import ArraySpec, DataBase, PipelineMode, RandomAccessGenerator, Sample, load_digits

from .params import DigitsParams, ImageFilesParams, TutorialDataParams


class Digits(RandomAccessGenerator[DigitsParams]):
    """Images and their classes from a data set."""

    def __init__(self, params: DigitsParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.images, self.labels = load_digits(params.dataset, "train" if mode == PipelineMode.TRAINING else "test")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs={"img": self.images[index]}, targets={"gt": self.labels[index]})


class ImageFiles(RandomAccessGenerator[ImageFilesParams]):
    """The names of image files; the processor `LoadImage` reads them."""

    def __len__(self) -> int:
        return len(self.params.image_files)

    def __getitem__(self, index: int) -> Sample:
        path = self.params.image_files[index]
        return Sample(inputs=path, meta={"file": str(path)})


class TutorialData(DataBase[TutorialDataParams]):
    """Names, shapes and types, and a line about a predicted sample."""

    inputs = {"img": ArraySpec((28, 28), "uint8")}
    targets = {"gt": ArraySpec((), "uint8")}

    def describe(self, sample: Sample) -> str:
        label = sample.outputs["class"]
        text = f"{label} (p = {sample.outputs['pred'][label]:.2f})"
        if not sample.targets:
            return f"{sample.meta['file']}: {text}" if sample.meta else text
        mark = "right" if label == sample.targets["gt"] else "WRONG"
        return f"{mark}: predicted {text}, target {sample.targets['gt']}"
