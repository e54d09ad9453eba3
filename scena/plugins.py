"""Extension points: what Scena itself and other installed packages offer by name.

Packages declare entry points of the group `scena.plugins`. The name of an entry point is `Kind.Name`, its value the module that
defines a params class, or the object itself where the kind has no parameters:

    [project.entry-points."scena.plugins"]
    "Optimizer.Sophia" = "my_package.optimizers"
    "Engine.fast" = "my_package.engine:FastEngine"

Names are read without importing anything; a module is imported when its name is chosen. Installing a package is consent; a file of
parameters never names a module. Folders are scanned directly: `importlib.metadata` takes 60 ms for what takes 3 ms here.
"""

import functools
import importlib
import os
import sys
from typing import Any, NamedTuple

from scena.errors import ScenaError

GROUP = "scena.plugins"

OWN = {
    ("Backend", "tensorflow"): "scena.backends.tensorflow.backend:TensorFlowBackend",
    ("Backend", "jax"): "scena.backends.jax.backend:JaxBackend",
    ("Engine", "python"): "scena.data.engines.parallel:python_engine",
    ("Engine", "tf.data"): "scena.data.tensorflow.image_pipeline:TensorEngine",
    ("Engine", "tf.data.interleave"): "scena.data.tensorflow.interleaved:InterleavedEngine",
}
"""What Scena itself offers of the kinds without parameters, in the form in which a package declares it."""

_registered: dict[tuple[str, str], Any] = {}


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
    attribute: str
    """Its name in there; empty for a params class."""
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
    """All names of a kind without parameters, and the names that plugins add to any other kind; nothing is imported for it."""
    return [*(name for of, name in OWN if of == kind), *added(kind)]


def added(kind: str) -> list[str]:
    """The names that others add to a kind; nothing is imported for it."""
    own = [name for of, name in _registered if of == kind]
    return list(dict.fromkeys([*own, *(plugin.name for plugin in installed() if plugin.kind == kind)]))


def register(kind: str, name: str, what: Any) -> None:
    """Offers something under a name of a kind without parameters, from a module that is imported with `--import`.

    Args:
        kind: "Engine" or "Backend".
        name: what a user types.
        what: the object, or "module:Name".
    """
    _registered[kind, name] = what


def load(kind: str, name: str) -> bool:
    """Imports the plugin of this kind and name; False if there is none.

    Raises:
        PluginError: it cannot be imported.
    """
    plugin = next((plugin for plugin in installed() if (plugin.kind, plugin.name) == (kind, name)), None)
    if plugin is not None:
        _import(plugin)
    return plugin is not None


def find(kind: str, name: str) -> Any:
    """What is called `name` among the things of a kind.

    Raises:
        PluginError: there is none, or it cannot be imported; the message lists what there is.
    """
    found = _registered.get((kind, name), OWN.get((kind, name)))
    if found is not None:
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = getattr(importlib.import_module(module), attribute)
        return found
    plugin = next((plugin for plugin in installed() if (plugin.kind, plugin.name) == (kind, name)), None)
    if plugin is None:
        raise PluginError(f"There is no {kind} {name!r}. There are {', '.join(names(kind))}.")
    module = _import(plugin)
    if not hasattr(module, plugin.attribute):
        raise PluginError(
            f"The package {plugin.package} declares {kind}.{name} as {plugin.module}:{plugin.attribute}, and {plugin.module} has no "
            f"{plugin.attribute or 'such'!r}. Update or remove the package."
        )
    return getattr(module, plugin.attribute)


def _import(plugin: Plugin) -> Any:
    try:
        return importlib.import_module(plugin.module)
    except Exception as error:
        raise PluginError(
            f"{plugin.kind} {plugin.name!r} of the package {plugin.package} cannot be imported: {type(error).__name__}: {error}. "
            f"Update or remove the package."
        ) from error


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
            home, _, attribute = (part.strip() for part in module.partition(":"))
            plugins.append(Plugin(kind, short, home, attribute, package))
    return plugins
