"""`scena records info PATH`: what record files hold, whether they are sound, and saving what is readable."""

import contextlib
from pathlib import Path

from scena.commands.command import Command
from scena.display import counting, visible
from scena.params import Params, param


class InfoOptions(Params):
    """What to look at."""

    path: str = param(required=True, positional="PATH", help="a folder, a file, a pattern with *, or an address")
    verify: bool = param(
        False, help="read all records and check them, as `scena verify` does; exit status 1 if something is wrong"
    )
    salvage: Path | None = param(None, help="copy all whole records of damaged files into this folder")
    plot: Path | None = param(None, aliases=["contact_sheet"], help="draw some of the images into this file")
    samples: int = param(40, ge=1, help="how many images to draw")
    seed: int = param(0, ge=0, lt=2**32, help="which of the images to draw")


class RecordsInfo(Command):
    """Shows what record files hold, and checks them."""

    name = "records info"
    options: InfoOptions

    def run(self) -> int:
        path, options = self.options.path, self.options
        status = _verify(path, options) if options.verify or options.salvage else 0
        if status:
            return status
        from scena.data.image.contact_sheet import save_sheet
        from scena.data.records.describe import describe_records, records_sheet
        from scena.data.records.framing import RecordError
        from scena.errors import DataError

        try:
            print(visible(describe_records(path)))
            if options.plot is not None:
                save_sheet(records_sheet(path, options.samples, options.seed), options.plot)
                print(f"wrote {options.plot}")
        except RecordError as error:
            raise DataError(f"{error} --verify lists all damage, --salvage DIR saves what is intact.") from None
        return 0


def _verify(path: str, options: InfoOptions) -> int:
    from scena.commands.results.verify import report
    from scena.data.image.statistics import INFO_FILE
    from scena.data.records.describe import collect_info, info_of
    from scena.data.records.record_set import find_files, no_records, splits_of
    from scena.data.records.schema import SCHEMA_FILE
    from scena.data.records.verify import Verified, salvage_file, verify_file
    from scena.data.records.writing import write_json
    from scena.experiments.verification import of_records
    from scena.storage.location import is_folder, located, read_bytes

    where = located(path)
    files = [f for split in splits_of(where).values() for f in split] if is_folder(where) else find_files(path)
    if not files:
        raise no_records(where)
    results: list[Verified] = []
    with counting("verifying", len(files)) as progress:
        for file in files:
            results.append(salvage_file(file, options.salvage / file.name) if options.salvage else verify_file(file))
            progress(1)
    if options.salvage is not None:
        with contextlib.suppress(FileNotFoundError):
            (options.salvage / SCHEMA_FILE).write_bytes(read_bytes(files[0].parent / SCHEMA_FILE))
        known = info_of(path)
        info = collect_info(options.salvage, known.get("classes")) if known else None
        if info is not None:
            write_json(options.salvage / INFO_FILE, info)
        print(f"saved {sum(result.records for result in results):,} records into {options.salvage}")
    return report(map(of_records, results))
