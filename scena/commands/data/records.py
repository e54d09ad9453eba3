"""`scena records write | info | convert | preview`: images and data sets as record files."""

import importlib

from scena.commands.usage import print_usage
from scena.params.errors import ParamsError

USAGE = """usage: scena records write --images FOLDER --output DIR [--flags]
       scena records convert SCENARIO | MODULE:DATASET | --dataset NAME --output DIR [--flags]
       scena records info PATH [--verify] [--contact_sheet FILE] [--salvage DIR]
       scena records preview SCENARIO --picture FILE [--flags]

  write     a folder of images (one folder for each class), or a table of paths and labels, as TFRecord files
  convert   a scenario's samples, your own tf.data.Dataset, or a data set by its name, as TFRecord files
  info      what record files hold, and whether they are sound
  preview   a picture of samples before and after augmentation

`scena records write --help` lists the flags of each."""
ACTIONS = ("write", "convert", "info", "preview")


def run(arguments: list[str]) -> int:
    """Runs one of the actions."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print_usage(USAGE)
        return 0 if arguments else 2
    action, rest = arguments[0], arguments[1:]
    if action not in ACTIONS:
        from scena.params.errors import did_you_mean

        raise ParamsError(
            f"scena records has no action {action!r}{did_you_mean(action, ACTIONS)}. See scena records --help."
        )
    module = importlib.import_module(f"scena.commands.data.records_{action}")
    status: int = module.run(rest)
    return status
