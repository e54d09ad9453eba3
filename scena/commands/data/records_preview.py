"""`scena records preview SCENARIO`: a picture of samples as they are, and as training sees them."""

from pathlib import Path
from typing import Any

from scena.commands.project_file import with_project_file
from scena.commands.scenario_argument import ImportOptions, import_modules, root_of, set_up_console, take_scenario
from scena.params import param, parse, parse_options
from scena.params.errors import ParamsError


class PreviewOptions(ImportOptions):
    """What the picture shows."""

    picture: Path = param(Path("preview.png"), help="the file to write")
    samples: int = param(8, ge=1, le=1000, help="how many samples, one in a row")
    copies: int = param(6, ge=1, le=100, help="how many augmented versions of each: those of the first epochs")
    size: int = param(112, ge=16, le=2000, help="the edge of each picture in pixels")


DESCRIPTION = (
    "Writes a picture of training samples: the original first in each row, then what augmentation makes of it."
)


def run(arguments: list[str]) -> int:
    """Writes the picture."""
    scenario, rest = take_scenario("records preview", arguments)
    options, rest = parse_options(PreviewOptions, rest)
    import_modules(options.modules)
    root = root_of(trainer=scenario.default_trainer_params())
    parsed = parse(
        root,
        with_project_file(rest),
        prog=f"scena records preview {arguments[0]}",
        description=DESCRIPTION,
        options=options,
    )
    set_up_console()
    trainer: Any = parsed.params.trainer
    data = scenario(trainer.scenario).create_data()
    pictures = preview_pictures(data, trainer.gen, options)
    from scena.data.image.contact_sheet import contact_sheet, save_sheet

    save_sheet(contact_sheet(pictures, columns=options.copies + 1, size=options.size), options.picture)
    print(
        f"wrote {options.picture}: {len(pictures) // (options.copies + 1)} samples, each followed by {options.copies} versions"
    )
    return 0


def preview_pictures(data: Any, gen: Any, options: PreviewOptions) -> list[tuple[Any, str]]:
    """Pictures and texts, row by row."""
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
    originals = list(_first(generator, options.samples)) if indices is None else [known[int(i)] for i in indices]
    rows = [[_picture(sample.inputs)] for sample in originals]
    with pipeline.stream(repeat=True) as stream:
        for place in range(len(rows) * options.copies):
            rows[place % len(rows)].append(_picture(next(stream).inputs, batched=True))
    if not rows or rows[0][1] is None:
        raise ParamsError("the samples of this scenario hold no picture: an input of shape (height, width[, 1 or 3]).")
    result: list[tuple[Any, str]] = []
    for number, (original, *made) in enumerate(rows):
        result.append((made[0] if original is None else original, f"sample {number}"))
        result += [(image, f"epoch {epoch}") for epoch, image in enumerate(made)]
    return result


def _first(generator: Any, count: int) -> Any:
    from itertools import islice

    return islice(generator.generate(), count)


def _picture(inputs: Any, batched: bool = False) -> Any:
    """The first input that is a picture."""
    import numpy as np

    for value in inputs.values() if isinstance(inputs, dict) else [inputs]:
        if isinstance(value, bytes):
            return value
        array = np.asarray(value)
        array = array[0] if batched else array
        if array.dtype.kind in "uif" and (array.ndim == 2 or (array.ndim == 3 and array.shape[-1] in (1, 3))):
            return array
    return None
