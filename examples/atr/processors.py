"""From image and text to arrays, and from the network's output to text."""

from pathlib import Path

import numpy as np
from PIL import Image

from scena import DataBaseParams, DataError, MappingDataProcessor, PipelineMode, Sample

from .data import decode, read_codec
from .params import AtrDataParams, DecodeTextParams, LoadLineParams, ScaleLineParams


class LoadLine(MappingDataProcessor[LoadLineParams]):
    """Reads a file, which `scena serve` gives as an open one; what is an image already stays as it is."""

    def apply(self, sample: Sample) -> Sample:
        if isinstance(sample.inputs, np.ndarray):
            return sample
        try:
            with Image.open(sample.inputs) as file:
                loaded = sample.new_inputs(np.asarray(file.convert("L")))
            if self.mode == PipelineMode.PREDICTION:
                return loaded
            return loaded.new_targets(Path(sample.inputs).with_suffix(".gt.txt").read_text(encoding="utf-8").strip())
        except OSError as error:
            raise DataError(f"Cannot read the line {sample.inputs} or its .gt.txt: {error}") from error


class ScaleLine(MappingDataProcessor[ScaleLineParams]):
    """Ink is light on dark for the network, as padding is dark."""

    def __init__(self, params: ScaleLineParams, data_params: DataBaseParams, mode: PipelineMode) -> None:
        super().__init__(params, data_params, mode)
        assert isinstance(data_params, AtrDataParams)
        self.height = data_params.line_height
        self.numbers = {character: number + 1 for number, character in enumerate(read_codec(data_params))}

    def apply(self, sample: Sample) -> Sample:
        picture = Image.fromarray(255 - sample.inputs)
        width = max(8, round(picture.width * self.height / picture.height))
        line = np.asarray(picture.resize((width, self.height), Image.Resampling.BILINEAR)).T
        changed = sample.new_inputs({"img": line, "width": np.int32(width)})
        if self.mode == PipelineMode.PREDICTION:
            return changed
        unknown = sorted(set(sample.targets) - set(self.numbers))
        if unknown:
            raise DataError(f"The text {sample.targets!r} has characters that the codec lacks: {unknown}.")
        text = np.array([self.numbers[character] for character in sample.targets], "int32")
        return changed.new_targets({"text": text, "length": np.int32(len(text))})


class DecodeText(MappingDataProcessor[DecodeTextParams]):
    """Gives the text that was read, in place of the network's numbers, and the right one where it is known."""

    def __init__(self, params: DecodeTextParams, data_params: DataBaseParams, mode: PipelineMode) -> None:
        super().__init__(params, data_params, mode)
        assert isinstance(data_params, AtrDataParams)
        self.characters = read_codec(data_params)

    def apply(self, sample: Sample) -> Sample:
        read = decode(sample.outputs["decoded"], self.characters)
        changed = sample.new_outputs({"text": read})
        if not sample.targets:
            return changed
        right = decode(sample.targets["text"][: sample.targets["length"]], self.characters)
        return changed.new_targets({**sample.targets, "string": right})
