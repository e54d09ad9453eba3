"""Where the samples come from, what they look like, and how a prediction is printed."""

from scena import ArraySpec, DataBase, PipelineMode, RandomAccessGenerator, Sample, load_digits

from .params import DigitsParams, TutorialDataParams


class Digits(RandomAccessGenerator[DigitsParams]):
    def __init__(self, params: DigitsParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.images, self.labels = load_digits(params.dataset, "train" if mode == PipelineMode.TRAINING else "test")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs={"img": self.images[index]}, targets={"gt": self.labels[index]})


class TutorialData(DataBase[TutorialDataParams]):
    inputs = {"img": ArraySpec((28, 28), "uint8")}
    targets = {"gt": ArraySpec((), "uint8")}

    def describe(self, sample: Sample) -> str:
        label = sample.outputs["class"]
        target = f", target {sample.targets['gt']}" if sample.targets else ""
        return f"predicted {label} (p = {sample.outputs['pred'][label]:.2f}){target}"
