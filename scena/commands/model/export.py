"""`scena export MODEL --format saved_model onnx litert`: converts an exported model, and checks the result."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.model_command import ModelCommand, ModelOptions
from scena.commands.output import make_folder
from scena.data.params import DataGeneratorParams
from scena.errors import ScenarioError
from scena.params import Params, ParamsError, param, parse, short_name, subclasses, take_part
from scena.prediction.params import ExportFormatParams, Quantize

if TYPE_CHECKING:
    from scena.data.sample import Arrays
    from scena.prediction.formats.conversion import Conversion


class ConvertOptions(ModelOptions):
    """Which model, and how to check the result."""

    quantize: Quantize | None = param(
        None, help="litert: 16-bit weights, 8-bit weights, or 8-bit weights and activations"
    )
    length: int | None = param(None, ge=1, help="litert: the fixed size of variable axes")
    tolerance: float | None = param(
        None, ge=0, help="how far outputs may be apart (default: 1e-4; float16 0.01, dynamic 0.05, int8 0.1)"
    )
    samples: int = param(16, ge=1, help="on how many samples to compare")
    out: Path | None = param(None, help="where to write (default: into the directory itself)")


class FormatRoot(Params):
    """What to write."""

    format: list[ExportFormatParams] = param([], help="the formats to write")


class ConvertRoot(FormatRoot):
    """What to write, and what to compare on."""

    data: DataGeneratorParams | None = param(None, help="the data to compare on (default: the run's validation data)")


class Export(ModelCommand):
    """Converts a model and each of its additional graphs to other formats: scena export run/best --format saved_model onnx litert

    Runs the converted model on samples of the run's validation data (or --data.…), and fails if its outputs differ from the
    original's by more than the tolerance.
    """

    name = "export"
    options: ConvertOptions
    formats: list[ExportFormatParams]

    def root(self) -> ConvertRoot:
        return ConvertRoot(data=self.pipelines.val_gen())

    def read(self, words: list[str]) -> None:
        """Reads the formats first: whether they can be written is known without the model."""
        self.formats = _formats(parse(FormatRoot(), take_part("format", words)[0]).params.format, self.options)
        super().read(words)

    def run(self) -> None:
        options, export = self.options, self.exports[0]
        if self.params.data is None:
            raise ScenarioError("The run had no validation data to compare on; name some with --data.")
        directory = options.out or export.directory
        make_folder("--out", directory)
        self.start()
        from scena.prediction.formats.conversion import Converter

        built = export.build()
        inputs = _inputs(built.data, self.pipelines.val, self.params.data, options.samples)
        converter = Converter(built, directory, inputs, tolerance=options.tolerance)
        for form in self.formats:
            for conversion in converter.convert(form):
                print(_line(short_name(type(form)), conversion))


def _formats(formats: list[ExportFormatParams], options: ConvertOptions) -> list[ExportFormatParams]:
    """The formats with the options that are common to several, once it is known that each can be written here."""
    names = [short_name(type(form)) for form in formats]
    if not formats:
        known = [short_name(cls) for cls in subclasses(ExportFormatParams)[1:]]
        raise ParamsError(f"--format is required: {', '.join(known[:-1])} or {known[-1]}, or several of them")
    for name in ("quantize", "length"):
        value = getattr(options, name)
        able = [form for form in formats if name in type(form).__params__]
        if value is not None and not able:
            raise ParamsError(f"--{name} is for --format litert only; received: {' '.join(names)}")
        formats = [form.replace(**{name: value}) if value is not None and form in able else form for form in formats]
    for form in formats:
        form.check_ready()
    return formats


def _inputs(data: Any, pipeline: Any, source: DataGeneratorParams, samples: int) -> "Arrays":
    from scena.data.params import PipelineMode

    plain = pipeline.replace(
        batch_size=samples, num_processes=0, batch_drop_remainder=False, bucket_boundaries=[], bucket_batch_sizes=[]
    )
    with data.create_pipeline(PipelineMode.EVALUATION, plain, source).stream(repeat=False) as batches:
        inputs: Arrays = next(batches).inputs
    return inputs


def _line(form: str, conversion: "Conversion") -> str:
    path = conversion.path
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    found = ", ".join(f"{output} {value:.2g}" for output, value in conversion.differences.items())
    return (
        f"{form}: {path} ({size / 1e6:.2f} MB); on {conversion.samples} samples the outputs differ by at most {found} "
        f"(tolerance {conversion.tolerance:g})"
    )
