"""What can be set about images: where they are, how they are prepared for records, and augmentations. Pure Python."""

from enum import StrEnum

from scena.data.params import DataBaseParams, DataPipelineParams, DataProcessorParams, PipelineMode
from scena.errors import ParamsError
from scena.params.declare import Params, param
from scena.storage.location import Location


class Processing(StrEnum):
    """What is done to an image before it is stored."""

    NONE = "NONE"
    CENTER_CROP_THEN_SCALE = "CENTER_CROP_THEN_SCALE"
    SQUARE_MARGIN_THEN_SCALE = "SQUARE_MARGIN_THEN_SCALE"


class ImagePreparationParams(Params):
    """How images are changed before they are stored; what needs no change is stored as it is."""

    processing: Processing = param(
        Processing.NONE,
        aliases=["preprocessing"],
        help="NONE, the largest square in the middle, or a margin that makes a square; both are then scaled to image_size",
    )
    image_size: list[int] = param([256, 256], ge=1, le=20_000, help="height and width for the last two")
    max_edge: int | None = param(None, ge=1, help="scale images whose longest edge is longer; keeps the aspect ratio")
    format: str = param("auto", choices=["auto", "jpeg", "png"], help="auto: JPEG stays JPEG, all else becomes PNG")
    jpeg_quality: int = param(95, ge=1, le=100, help="quality of JPEGs that had to be changed")

    def __post_init__(self) -> None:
        if len(self.image_size) != 2:
            raise ParamsError(f"image_size is height and width, for example 256 256. Received: {self.image_size}")
        if self.max_edge is not None and self.processing is not Processing.NONE:
            raise ParamsError("max_edge keeps the aspect ratio and processing makes squares: set one of them.")


SPLIT_HELP = "train, train[:80%], train[100:]+test, …; default: by the mode, and a seeded tenth of train where there is no validation"
IMAGES_HELP = (
    "a folder with a folder of images for each class, or with splits that have those; with csv: the base of its paths"
)
CSV_HELP = "a table of paths and labels"


class ImagePlacesParams(Params, abstract=True):
    """Where images are."""

    images: Location | None = param(None, help=IMAGES_HELP)
    csv: Location | None = param(None, help=CSV_HELP)
    delimiter: str | None = param(None, help="the separator of columns; default: a tab in .tsv, else a comma")
    header: bool = param(True, help="the first line of the table names its columns")
    path_column: str | None = param(None, help="name or number (from 0) of the column of paths; default: the first")
    label_column: str | None = param(
        None, help="the same for labels; default: that named label or class, or the second"
    )
    split_column: str | None = param(None, help="the same for splits; default: the one named split, if there is one")
    folders: str = param(
        "auto",
        choices=["auto", "classes", "splits"],
        help="what the folders in `images` are; auto: splits if they are named so (train, validation, test1, …), else classes",
    )

    def __post_init__(self) -> None:
        if self.images is None and self.csv is None:
            raise ParamsError("say where the images are: `images` (a folder for each class) or `csv` (a table).")


class WriteImagesParams(ImagePlacesParams):
    """Images into record files."""

    images: Location | None = param(None, aliases=["data.images_dir_path"], help=IMAGES_HELP)
    csv: Location | None = param(None, aliases=["data.annotation_file_path"], help=CSV_HELP)
    output: Location = param(required=True, aliases=["tfrecord_dir_path"], help="the folder to write the data set into")
    name: str = param("", help="the name of the data set, a folder in output; default: that of the images or table")
    preparation: ImagePreparationParams = param(inline=True, help="how images are changed")
    split_names: list[str] = param(
        ["train", "validation", "test"],
        aliases=["data.split_names"],
        help="the splits to make, unless there are some already",
    )
    split_fractions: list[float] = param(
        [0.8, 0.1, 0.1],
        ge=0,
        le=1,
        aliases=["split_percentages", "data.split_percentages"],
        help="their shares, which sum to 1",
    )
    seed: int = param(0, ge=0, lt=2**32, help="of the split and of the order of records")
    records_per_file: int = param(1000, ge=1, help="records in a file, at most")
    num_files: int | None = param(None, ge=1, help="files for each split instead; classes are spread evenly over them")
    compression: str = param("", choices=["", "GZIP", "ZLIB"], help="compress the files (images hardly get smaller)")
    workers: int | None = param(None, ge=1, help="threads that prepare images; default: one for each core")
    force: bool = param(False, help="replace a data set of this name")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name in (".", "..") or "/" in self.name or "\0" in self.name:
            raise ParamsError(f"name is a folder in output, so it has no slash. Received: {self.name!r}")
        check_fractions(self.split_names, self.split_fractions)


def check_fractions(names: list[str], fractions: list[float]) -> None:
    """Raises unless there is a share for each split and they sum to 1."""
    if len(names) != len(fractions):
        raise ParamsError(f"split_fractions needs one share for each of the splits {names}. Received: {fractions}")
    if len(set(names)) != len(names) or not all(name and "/" not in name for name in names):
        raise ParamsError(f"split_names must be different names without a slash. Received: {names}")
    if abs(sum(fractions) - 1) > 1e-6:
        raise ParamsError(f"split_fractions must sum to 1. Received: {fractions}, which sum to {sum(fractions):g}")


IMAGENET_MEAN = [0.485, 0.456, 0.406]
IMAGENET_STD = [0.229, 0.224, 0.225]


def _pair(name: str, values: list[int] | list[float] | None) -> None:
    if values is not None and len(values) != 2:
        raise ParamsError(f"{name} takes two values. Received: {values}")


def _range(name: str, values: list[float]) -> None:
    _pair(name, values)
    if values[0] > values[1]:
        raise ParamsError(f"{name} is a range, the lower value first. Received: {values}")


_INTERPOLATION = param("bilinear", choices=["bilinear", "nearest"], help="how values between pixels are computed")


class OperationParams(Params, abstract=True):
    """One operation on an image of values from 0 to 255, of shape (height, width, channels)."""


class NormalizeParams(OperationParams, builds=".augment.operations:Normalize"):
    """Scales to 0..1, subtracts the mean and divides by the standard deviation of each channel."""

    mean: list[float] = param(IMAGENET_MEAN, help="mean of each channel, of values from 0 to 1")
    std: list[float] = param(IMAGENET_STD, gt=0, help="standard deviation of each channel")
    info: Location | None = param(None, help="take both from the info file that `scena records write` wrote")


class ColorJitterParams(OperationParams, builds=".augment.operations:ColorJitter"):
    """Changes brightness, contrast, saturation and hue at random."""

    brightness: float = param(0.2, ge=0, le=1, help="adds at most this share of the range of values, or subtracts it")
    contrast: list[float] = param([0.8, 1.2], ge=0, help="range of the factor around each channel's mean")
    saturation: list[float] = param([0.8, 1.2], ge=0, help="range of the factor of the distance from grey")
    hue: float = param(0.05, ge=0, le=0.5, help="rotates colours by at most this share of the colour circle")
    clip: bool = param(True, help="clip the result to 0..255")

    def __post_init__(self) -> None:
        _range("contrast", self.contrast)
        _range("saturation", self.saturation)


class RandomHorizontalFlipParams(OperationParams, builds=".augment.operations:RandomHorizontalFlip"):
    """Mirrors left and right."""

    probability: float = param(0.5, ge=0, le=1, help="the share of images that are flipped")


class RandomVerticalFlipParams(OperationParams, builds=".augment.operations:RandomVerticalFlip"):
    """Mirrors top and bottom."""

    probability: float = param(0.5, ge=0, le=1, help="the share of images that are flipped")


class RandomRotateParams(OperationParams, builds=".augment.operations:RandomRotate"):
    """Rotates by a random angle around the centre; the size stays."""

    angle: float = param(15.0, ge=0, le=180, help="the largest angle in degrees, in either direction")
    interpolation: str = _INTERPOLATION
    fill: float = param(0.0, ge=0, le=255, help="the value of pixels from outside of the image")


class RandomRotate90Params(OperationParams, builds=".augment.operations:RandomRotate90"):
    """Rotates by 0, 90, 180 or 270 degrees."""


class SizedOperationParams(OperationParams, abstract=True):
    """An operation whose result has a fixed size."""

    size: list[int] = param([224, 224], ge=1, le=20_000, help="height and width")

    def __post_init__(self) -> None:
        _pair("size", self.size)


class RandomCropParams(SizedOperationParams, builds=".augment.operations:RandomCrop"):
    """Crops a random part of a fixed size."""


class CentralCropParams(OperationParams, builds=".augment.operations:CentralCrop"):
    """Crops the centre and scales it."""

    proportion: float = param(0.875, gt=0, le=1, help="the share of height and width that is kept")
    size: list[int] | None = param(None, ge=1, le=20_000, help="height and width of the result; default: not scaled")
    interpolation: str = _INTERPOLATION

    def __post_init__(self) -> None:
        _pair("size", self.size)


class RandomCropThenResizeParams(SizedOperationParams, builds=".augment.operations:RandomCropThenResize"):
    """Crops a random part of random size and aspect ratio, and scales it."""

    scale: list[float] = param([0.08, 1.0], gt=0, le=1, help="range of the share of the area that is kept")
    ratio: list[float] = param([0.75, 1.3333333], gt=0, help="range of width / height of the part")
    interpolation: str = _INTERPOLATION

    def __post_init__(self) -> None:
        super().__post_init__()
        _range("scale", self.scale)
        _range("ratio", self.ratio)


class ResizeParams(SizedOperationParams, builds=".augment.operations:Resize"):
    """Scales to a fixed size."""

    interpolation: str = _INTERPOLATION


class ResizeThenRandomCropParams(SizedOperationParams, builds=".augment.operations:ResizeThenRandomCrop"):
    """Scales to a fixed size and crops a random part of it."""

    size: list[int] = param([256, 256], ge=1, le=20_000, help="height and width to scale to")
    crop_size: list[int] = param([224, 224], ge=1, le=20_000, help="height and width of the crop")
    interpolation: str = _INTERPOLATION

    def __post_init__(self) -> None:
        super().__post_init__()
        _pair("crop_size", self.crop_size)
        if self.crop_size[0] > self.size[0] or self.crop_size[1] > self.size[1]:
            raise ParamsError(f"crop_size must fit into size. Received: {self.crop_size} and {self.size}")


class TranslateParams(OperationParams, builds=".augment.operations:Translate"):
    """Shifts the image by whole pixels at random; the size stays."""

    width: float = param(0.1, ge=0, lt=1, help="the largest shift to the left or right, as a share of the width")
    height: float = param(0.1, ge=0, lt=1, help="the largest shift up or down, as a share of the height")
    padding: str = param("reflect", choices=["constant", "reflect", "symmetric"], help="what appears at the border")
    fill: float = param(0.0, ge=0, le=255, help="the value at the border (constant)")


class CutoutParams(OperationParams, builds=".augment.operations:Cutout"):
    """Fills a square at a random position of the image."""

    length: int = param(16, ge=1, help="the side of the square in pixels")
    fill: float = param(0.0, ge=0, le=255, help="the value of its pixels")


class PadParams(OperationParams, builds=".augment.operations:Pad"):
    """Adds a border, for example before RandomCrop."""

    pixels: int = param(4, ge=1, le=10_000, help="width of the border")
    padding: str = param("constant", choices=["constant", "reflect", "symmetric"], help="what is in the border")
    fill: float = param(0.0, ge=0, le=255, help="the value of the border (constant)")


class AugmentParams(DataProcessorParams, builds=".augment.processor:Augment"):
    """Applies operations to an image of the inputs, in order."""

    modes: set[PipelineMode] = param({PipelineMode.TRAINING}, help="modes in which the processor is applied")
    image: str = param("image", help="the input that holds the image")
    operations: list[OperationParams] = param([], help="the operations, in order")


class DecodeImageParams(DataProcessorParams, builds=".augment.processor:DecodeImage"):
    """Makes an array (height, width, channels) of 8-bit values from an encoded image."""

    image: str = param("image", help="the input that holds the encoded image")
    channels: int = param(3, choices=[1, 3], help="3: colour; 1: grey")


class ImagePipelineParams(DataPipelineParams):
    """How images become batches."""

    split: str | None = param(None, help=SPLIT_HELP)
    augment: list[OperationParams] = param([], help="operations on each image, in order")
    engine: str = param(
        "python",
        choices=["python", "tf.data", "tf.data.interleave"],
        plugin="Engine",
        help="python: any source and processor, in worker processes; tf.data: image records by index, in TensorFlow's threads; "
        "tf.data.interleave: several files at a time in order, shuffled within shuffle_buffer_size (default: 256 MB of records)",
    )
    data_service: str | None = param(None, help="host:port of `scena data-service`, which then makes the batches")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data_service is not None and self.engine != "tf.data.interleave":
            raise ParamsError(f"data_service needs --train.engine tf.data.interleave. Received: engine {self.engine}")


class ImageDataParams(DataBaseParams, builds="scena.data.image.database:ImageData"):
    """Images of one size and their class. Images that augmentations leave at another size are scaled."""

    image_shape: list[int] = param([224, 224, 3], ge=1, help="height, width and channels (3 or 1) of the model's input")

    def __post_init__(self) -> None:
        if len(self.image_shape) != 3 or self.image_shape[2] not in (1, 3):
            raise ParamsError(f"image_shape is height, width and 1 or 3 channels. Received: {self.image_shape}")
