"""`scena records write`: images into record files."""

from typing import Any

from scena.commands.command import Command
from scena.data.image.params import WriteImagesParams
from scena.display import counting, visible


class RecordsWrite(Command):
    """Writes a folder of images (one folder for each class), or a table of paths and labels, as TFRecord files."""

    name = "records write"

    def root(self) -> WriteImagesParams:
        return WriteImagesParams()

    def run(self) -> None:
        from scena.data.image.listing import find_images
        from scena.data.image.writer import write_images
        from scena.storage.location import located

        self.show_log()
        found = find_images(self.params)
        with counting("writing", len(found.entries)) as progress:
            info = write_images(self.params, progress, found)
        print(visible(summary(info, str(located(self.params.output) / info["name"]))))


def summary(info: dict[str, Any], folder: str) -> str:
    """What was written, and what was not."""
    from scena.data.image.listing import as_report

    splits = (f"{name} {split['count']:,} ({split['files']} files)" for name, split in info["splits"].items())
    lines = [f"wrote {folder}: {len(info['classes'])} classes; {', '.join(splits)}"]
    empty = [name for name, split in info["splits"].items() if not split["count"]]
    if empty:
        lines.append(f"empty: {', '.join(empty)}. There are too few images for these shares of each class.")
    if info["changed"]:
        lines.append("changed: " + ", ".join(f"{count} {what}" for what, count in info["changed"].items()))
    if info["left_out"]:
        lines.append(f"skipped {len(info['left_out'])}:")
        lines.append(as_report([(item["name"], item["reason"]) for item in info["left_out"]]))
    return "\n".join(lines)
