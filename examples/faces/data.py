"""Sources of faces. Each keeps some people for validation; their numbers come after those of the training."""

from pathlib import Path
from typing import Any

import numpy as np

from scena import ArraySpec, DataBase, DataError, PipelineMode, RandomAccessGenerator, Sample
from scena.data.image import images_in_tree
from scena.data.records import RecordSet

from .params import DrawnParams, FaceDataParams, FaceFilesParams, FaceRecordsParams, FolderParams
from .people import draw_face, make_person

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp")
IN_A_ROW = 4
"""Images of a person that follow each other, so that a validation batch has several of each."""


class DrawnFaces(RandomAccessGenerator[DrawnParams]):
    """An image for each index, always the same one; the first images are of different people, a few of each."""

    def __init__(self, params: DrawnParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.people = params.people
        """The number of people to train on."""
        train = mode == PipelineMode.TRAINING
        self._first = 0 if train else params.people
        self._count = params.people if train else params.new_people
        self._pictures = params.pictures if train else params.new_pictures

    def __len__(self) -> int:
        return self._count * self._pictures

    def __getitem__(self, index: int) -> Sample:
        whole = self._count * IN_A_ROW * (self._pictures // IN_A_ROW)
        if index < whole:
            rounds, rest = divmod(index, self._count * IN_A_ROW)
            person, picture = rest // IN_A_ROW, rounds * IN_A_ROW + rest % IN_A_ROW
        else:
            person, picture = divmod(index - whole, self._pictures % IN_A_ROW)
            picture += whole // self._count
        label = self._first + person
        rng = np.random.default_rng([label, picture])
        return Sample(inputs=draw_face(make_person(label), self.params.drawn_size, rng), targets={"label": label})


class FaceFolder(RandomAccessGenerator[FolderParams]):
    """The names of image files; `LoadFace` reads them."""

    def __init__(self, params: FolderParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        found = images_in_tree(params.folder)
        if found.splits:  # people are divided here, by `held_out`
            raise DataError(f"{params.folder} has folders for splits ({', '.join(found.splits)}): name one of them.")
        people = [[entry.path for entry in found.entries if entry.label == n] for n in range(len(found.classes))]
        files = [[path for path in paths if path.suffix.lower() in ENDINGS] for paths in people]
        files = [paths for paths in files if paths]
        numbers, self.people = chosen_people(len(files), params.held_out, mode, str(params.folder))
        self.files = [(path, number) for number in numbers for path in files[number]]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Sample:
        path, label = self.files[index]
        return Sample(inputs=path, targets={"label": label}, meta=str(path))


class FaceRecords(RandomAccessGenerator[FaceRecordsParams]):
    """Records of (image, number of a person); which record is whose is read once."""

    def __init__(self, params: FaceRecordsParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.records = RecordSet(params.records)
        labels = [int(self._record(index)[1]) for index in range(len(self.records))]
        numbers, self.people = chosen_people(max(labels) + 1, params.held_out, mode, params.records)
        self.indices = [index for index, label in enumerate(labels) if label in numbers]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Sample:
        picture, label = self._record(self.indices[index])
        return Sample(inputs=np.asarray(picture), targets={"label": int(label)})

    def _record(self, index: int) -> Any:
        record = self.records[index]
        if not isinstance(record, tuple) or len(record) != 2:
            raise DataError(
                f"The records of {self.params.records!r} must be pairs (image, number of a person). Received: {record!r:.80}"
            )
        return record


class FaceFiles(RandomAccessGenerator[FaceFilesParams]):
    """Images to compare."""

    def __len__(self) -> int:
        return len(self.params.image_files)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs=Path(self.params.image_files[index]), meta=str(self.params.image_files[index]))


class FaceData(DataBase[FaceDataParams]):
    """An image and the number of a person."""

    targets = {"label": ArraySpec((), "int32")}
    _first: tuple[str, np.ndarray] | None = None  # what predicted faces are compared with

    def input_specs(self) -> dict[str, ArraySpec]:
        return {"image": ArraySpec((self.params.size, self.params.size, 3), "uint8")}

    def describe_prediction(self, sample: Sample) -> str:
        embedding = sample.outputs["embedding"]
        if self._first is None:
            self._first = str(sample.meta), embedding
        name, first = self._first
        return f"{sample.meta}: {float(embedding @ first):.3f} like {name}"


def chosen_people(count: int, held_out: float, mode: PipelineMode, where: str) -> tuple[range, int]:
    """The numbers of the people that a mode sees, and how many are trained on: the first ones; the last ones are held out."""
    trained = count - max(2, round(count * held_out))
    if trained < 2:
        raise DataError(
            f"{where} has images of {count} people. At least four are needed: two to train on, two to validate on."
        )
    return range(trained) if mode == PipelineMode.TRAINING else range(trained, count), trained
