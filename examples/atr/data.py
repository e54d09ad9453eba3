"""Lines in files, and the specs: width first, so that it is the length that buckets and padding are about."""

from pathlib import Path

import numpy as np

from scena import ArraySpec, DataBase, DataError, PipelineMode, RandomAccessGenerator, Sample

from .params import AtrDataParams, LineFilesParams


class LineFiles(RandomAccessGenerator[LineFilesParams]):
    """The names of image files; `LoadLine` reads them."""

    def __init__(self, params: LineFilesParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.files = list(params.image_files)
        for path in params.lists:
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except OSError as error:
                raise DataError(f"Cannot read the list {path}: {error}") from error
            self.files += [path.parent / line.strip() for line in lines if line.strip() and not line.startswith("#")]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs=self.files[index], meta=str(self.files[index]))


class AtrData(DataBase[AtrDataParams]):
    """A line is (width, height); a text is a row of numbers of characters, 0 is nothing."""

    targets = {"text": ArraySpec((None,), "int32"), "length": ArraySpec((), "int32")}

    def characters(self) -> str:
        """The characters of the codec; character number n + 1 is characters[n]."""
        return read_codec(self.params)

    def input_specs(self) -> dict[str, ArraySpec]:
        return {"img": ArraySpec((None, self.params.line_height), "uint8"), "width": ArraySpec((), "int32")}

    def describe(self, sample: Sample) -> str:
        if sample.targets:
            return f"{sample.targets['string']!r} was read as {sample.outputs['text']!r}"
        return f"{sample.meta}: {sample.outputs['text']}"


def read_codec(params: AtrDataParams) -> str:
    """All characters that can be read."""
    return Path(params.codec).read_text(encoding="utf-8").rstrip("\n")


def decode(numbers: np.ndarray, characters: str) -> str:
    """The text of numbers of characters."""
    return "".join(characters[number - 1] for number in numbers if number > 0)
