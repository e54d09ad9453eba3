"""`scena lav --report DIR`: what the page shows of a run, beside the samples themselves."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.places import make_folder
from scena.data.params import DataGeneratorParams
from scena.params import to_raw
from scena.storage.run_layout import EXPORT_FILE, HISTORY_FILE

if TYPE_CHECKING:
    from scena.data.sample import Sample
    from scena.evaluation.report.collect import Collected
    from scena.scenario.loading import LoadedExport


class Reporter:
    """Watches a validation and writes its report.

    Args:
        directory: where the page goes.
        exports: the models.
        source: the data they are validated on.
    """

    def __init__(self, directory: Path, exports: "list[LoadedExport]", source: DataGeneratorParams) -> None:
        from scena.evaluation.report.page import Report
        from scena.evaluation.report.plots import new_figure

        new_figure()  # says at once if matplotlib is missing
        make_folder("--report", directory)
        self._exports = exports
        self._source = source
        self._report = Report(
            directory, f"{type(exports[0].scenario).__name__}: {', '.join(str(e.directory) for e in exports)}"
        )
        self._collected: dict[tuple[str, str], Collected] = {}

    def observe(self, name: str, part: str, lav: Any, sample: "Sample") -> None:
        """Keeps what the page needs of a sample."""
        from scena.evaluation.report.collect import Collected

        del lav
        if (name, part) not in self._collected:
            self._collected[name, part] = Collected()
        self._collected[name, part](sample)

    def add(self, title: str, name: str, part: str, evaluator: Any) -> None:
        """A section for one model on one part of the data, once it has been validated."""
        self._report.add_model(title, self._collected.pop((name, part)), evaluator)

    def write(self, results: dict[str, dict[str, Any]]) -> Path:
        """Writes the page."""
        from scena.scenario.stored import read_description

        page = self._report
        for file in dict.fromkeys(export.directory.resolve().parent / HISTORY_FILE for export in self._exports):
            page.add_history(file)
        for export in self._exports:
            stored = read_description(export.directory / EXPORT_FILE)
            page.add_details(f"Parameters of {export.directory}", stored["trainer"])
            page.add_details(f"Versions of {export.directory}", stored.get("versions", {}))
        page.add_details("Data", to_raw(self._source))
        return page.write(results)
