"""Extension points: what other installed packages add to Scena, through entry points of the group `scena.plugins`.

The name of an entry point is `Kind.Name`, its value the module that defines the class:

    [project.entry-points."scena.plugins"]
    "Optimizer.Sophia" = "my_package.optimizers"

Names are read without importing anything; a module is imported when its name is chosen. Installing a package is consent; a file of
parameters never names a module. Folders are scanned directly: `importlib.metadata` takes 60 ms for what takes 3 ms here.
"""

import functools
import importlib
import os
import sys
from typing import NamedTuple

from scena.errors import ScenaError

GROUP = "scena.plugins"


class PluginError(ScenaError):
    """An installed plugin cannot be used; the message names its package."""


class Plugin(NamedTuple):
    """One entry point of an installed package."""

    kind: str
    """What it is: the name of a base class without "Params", for example "Optimizer"."""
    name: str
    """What a user types."""
    module: str
    """The module that defines it."""
    package: str
    """The package that brings it, with its version."""


@functools.cache
def installed() -> tuple[Plugin, ...]:
    """All plugins of the packages on the path, ordered by name."""
    found: dict[tuple[str, str], Plugin] = {}
    for folder in sys.path:
        try:
            entries = [entry for entry in os.scandir(folder or ".") if entry.name.endswith(".dist-info")]
        except OSError:
            continue
        for entry in entries:
            for plugin in _read(entry.path, entry.name.removesuffix(".dist-info").replace("-", " ")):
                found.setdefault((plugin.kind, plugin.name), plugin)  # as for imports, the first on the path counts
    return tuple(found[key] for key in sorted(found))


def names(kind: str) -> list[str]:
    """The names that plugins add to a kind; nothing is imported."""
    return [plugin.name for plugin in installed() if plugin.kind == kind]


def load(kind: str, name: str) -> bool:
    """Imports the plugin of this kind and name; False if there is none.

    Raises:
        PluginError: it cannot be imported.
    """
    for plugin in installed():
        if (plugin.kind, plugin.name) == (kind, name):
            try:
                importlib.import_module(plugin.module)
            except Exception as error:
                raise PluginError(
                    f"{kind} {name!r} of the package {plugin.package} cannot be imported: {type(error).__name__}: {error}. "
                    f"Update or remove the package."
                ) from error
            return True
    return False


def _read(folder: str, package: str) -> list[Plugin]:
    try:
        with open(os.path.join(folder, "entry_points.txt"), encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return []
    _, found, rest = text.partition(f"[{GROUP}]")
    plugins = []
    for line in rest.splitlines() if found else ():
        if line.startswith("["):
            break
        name, equals, module = (part.strip() for part in line.partition("="))
        kind, dot, short = name.partition(".")
        if equals and dot and short:
            plugins.append(Plugin(kind, short, module.partition(":")[0].strip(), package))
    return plugins
