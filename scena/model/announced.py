"""Lets `keras.saving.load_model` read the exports of scenarios that are imported, without importing Keras or their models before.

Keras finds classes by the names under which they are registered, which happens when their module is imported. The outermost layer of
an export is Scena's `RootGraph`: a stand-in is registered under its name, as soon as Keras is imported, and whoever reads a root graph
imports the models of all scenarios that were imported.
"""

import importlib.util
import logging
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from scena.errors import first_line
from scena.params import Params

logger = logging.getLogger(__name__)

ROOT = "scena.model.graph>RootGraph"
_announced: list[Callable[[], object]] = []


def announce(import_model: Callable[[], object]) -> None:
    """Remembers how the model of a scenario is imported."""
    _announced.append(import_model)
    if hasattr(sys.modules.get("keras"), "saving"):
        _register()
    elif not any(isinstance(finder, _KerasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _KerasFinder())


def import_models(params: Params | None) -> None:
    """Imports every model that such parameters can build, so that Keras knows their graphs. A base of scenarios has none."""
    found = [] if params is None else [type(params)]
    for one in found:
        found += one.__subclasses__()
        if one.__builds__ is not None:
            one.implementation()


def import_announced() -> None:
    """Imports the models of all scenarios, and thereby registers their graphs."""
    while _announced:
        try:
            _announced.pop()()
        except Exception as error:  # of another scenario, perhaps; Keras reports a graph that it misses
            logger.warning("The model of an imported scenario cannot be imported: %s", first_line(error))


class _RootGraph:
    """Stands in for `scena.model.graph.RootGraph` until that is imported."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        from scena.model.graph import RootGraph

        return RootGraph.from_config(config)

    def get_config(self) -> dict[str, Any]:
        """Keras asks for it."""
        return {}


def _register() -> None:
    import keras

    keras.saving.get_custom_objects().setdefault(ROOT, _RootGraph)


class _KerasFinder(MetaPathFinder):
    """Registers the stand-in when Keras is imported, as any package finder may; it then removes itself."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "keras":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader)
        return spec


class _RegisteringLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:  # others may look at how Keras is loaded
            spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _register()
