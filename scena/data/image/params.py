"""Where images are, and how they are prepared for records. Pure Python; augmentations are in augment/params.py."""

from enum import StrEnum

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


IMAGES_HELP = (
    "a folder with a folder of images for each class, or with splits that have those; with csv: the base of its paths"
)
CSV_HELP = "a table of paths and labels"


class ImagePlacesParams(Params, abstract=True):
    """Where images are."""

    images: Location | None = param(None, help=IMAGES_HELP)
    csv: Location | None = param(None, help=CSV_HELP)
    delimiter: str | None = param(
        None, help="the separator of the table's columns; default: a tab in .tsv, else a comma"
    )
    header: bool = param(True, help="the first line of the table names its columns")
    path_column: str | None = param(None, help="name or number (from 0) of the column of paths; default: the first")
    label_column: str | None = param(
        None, help="the same for labels; default: the one named label or class, or the second"
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
