"""`scena records preview SCENARIO`: an image of samples as they are, and as training sees them."""

from itertools import islice
from pathlib import Path
from typing import Any

from scena.commands.command import ScenarioCommand, ScenarioOptions
from scena.params import ParamsError, param


class PreviewOptions(ScenarioOptions):
    """What the image shows."""

    plot: Path = param(Path("preview.png"), aliases=["picture"], help="write the image to this file")
    samples: int = param(8, ge=1, le=1000, help="how many samples, one per row")
    copies: int = param(6, ge=1, le=100, help="how many augmented versions of each: those of the first epochs")
    size: int = param(112, ge=16, le=2000, help="the size of each sample in pixels")


class RecordsPreview(ScenarioCommand):
    """Draws training samples: the original first in each row, then what augmentation makes of it."""

    name = "records preview"
    options: PreviewOptions

    def run(self) -> None:
        options = self.options
        self.show_log()
        data = self.scenario(self.trainer.scenario).create_data()
        images = preview_images(data, self.trainer.gen, options)
        from scena.data.image.contact_sheet import contact_sheet, save_sheet

        save_sheet(contact_sheet(images, columns=options.copies + 1, size=options.size), options.plot)
        count = len(images) // (options.copies + 1)
        print(f"wrote {options.plot}: {count} samples, each followed by {options.copies} versions")


def preview_images(data: Any, gen: Any, options: PreviewOptions) -> list[tuple[Any, str]]:
    """Images and texts, row by row."""
    from scena.data.generator import as_generator
    from scena.data.params import PipelineMode

    source = gen.train_gen()
    generator = as_generator(source, PipelineMode.TRAINING)
    changes = {
        "limit": options.samples,
        "shuffle_buffer_size": 0,
        "num_processes": 0,
        "batch_size": 1,
        "bucket_boundaries": [],
    }
    pipeline = data.create_pipeline(PipelineMode.TRAINING, gen.train.replace(**changes), source)
    indices = pipeline.indices()
    known: Any = generator
    originals = (
        list(islice(generator.generate(), options.samples)) if indices is None else [known[int(i)] for i in indices]
    )
    rows = [[_image(sample.inputs)] for sample in originals]
    with pipeline.stream(repeat=True) as stream:
        for index in range(len(rows) * options.copies):
            rows[index % len(rows)].append(_image(next(stream).inputs, batched=True))
    if not rows or rows[0][1] is None:
        raise ParamsError("the samples of this scenario hold no image: an input of shape (height, width[, 1 or 3]).")
    result: list[tuple[Any, str]] = []
    for number, (original, *made) in enumerate(rows):
        result.append((made[0] if original is None else original, f"sample {number}"))
        result += [(image, f"epoch {epoch}") for epoch, image in enumerate(made)]
    return result


def _image(inputs: Any, batched: bool = False) -> Any:
    """The first input that is an image."""
    import numpy as np

    for value in inputs.values() if isinstance(inputs, dict) else [inputs]:
        if isinstance(value, bytes):
            return value
        array = np.asarray(value)
        array = array[0] if batched else array
        if array.dtype.kind in "uif" and (array.ndim == 2 or (array.ndim == 3 and array.shape[-1] in (1, 3))):
            return array
    return None
