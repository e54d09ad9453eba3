"""Where the samples come from and what they look like."""

from scena import ArraySpec, DataBase, PipelineMode, RandomAccessGenerator, Sample
from scena.data.sources.digits import load_digits

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
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"img": ArraySpec((28, 28), "uint8")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"gt": ArraySpec((), "uint8")}
