"""Parameters of the ready-made generators. Pure Python."""

from pathlib import Path

from scena.data.params import DataGeneratorParams
from scena.params.declare import param
from scena.params.errors import ParamsError


class ListFileGeneratorParams(DataGeneratorParams, builds=".lists:ListFileGenerator"):
    """Lines of text files, each the name of a sample (a file, most often)."""

    lists: list[str] = param([], help="text files with one sample per line")
    list_ratios: list[float] = param(
        [], help="training: how often samples of each list are drawn, relative to each other; default: each list once"
    )
    ignore_prefix: str = param("#", help="lines that start with this are left out")

    def __post_init__(self) -> None:
        if self.list_ratios and len(self.list_ratios) != len(self.lists):
            raise ParamsError(
                f"list_ratios needs one number for each of the {len(self.lists)} lists. Received: {self.list_ratios}"
            )
        if any(ratio < 0 for ratio in self.list_ratios) or (self.list_ratios and not sum(self.list_ratios)):
            raise ParamsError(f"list_ratios must not be negative, nor all zero. Received: {self.list_ratios}")

    def parts(self) -> dict[str, DataGeneratorParams]:
        """One source for each list, named after its file."""
        if len(self.lists) < 2:
            return {"": self}
        stems = [Path(name).stem for name in self.lists]
        names = stems if len(set(stems)) == len(stems) else self.lists
        return {name: self.replace(lists=[path], list_ratios=[]) for name, path in zip(names, self.lists, strict=True)}


class RowGeneratorParams(DataGeneratorParams, builds=".rows:RowGenerator"):
    """Rows of CSV or TSV files with a header line; each row is a dict by column name."""

    files: list[str] = param([], help="CSV or TSV files with a header line")
    delimiter: str | None = param(None, help="what separates columns; default: a tab in .tsv files, else a comma")
    input_columns: list[str] = param([], help="columns of the inputs; default: all that are not targets")
    target_columns: list[str] = param([], help="columns of the targets")


class ArrayGeneratorParams(DataGeneratorParams, builds=".arrays:ArrayGenerator"):
    """Rows of arrays in .npy, .npz or HDF5 files; the first axis counts samples."""

    inputs: dict[str, str] = param({}, help="input name: file.npy, file.npz:array or file.h5:array")
    targets: dict[str, str] = param({}, help="target name: file.npy, file.npz:array or file.h5:array")
