"""Writing export directories: at the end of a training, and with changed parameters for the same weights (`scena adapt`)."""

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.data.resource import export_resources
from scena.errors import ConversionError, ScenarioError
from scena.model.state.archive import write_layer_file
from scena.params import short_name
from scena.prediction.converted import is_verified
from scena.scenario.stored import (
    ExportParams,
    describe,
    model_content,
    read_description,
    refuse_existing,
    write_description,
)
from scena.storage.checksums import add_checksums, keep_foreign, seal_tree, tree_checksums
from scena.storage.durable import link_tree, put_in_place, replace_directory, sync_tree
from scena.storage.run_layout import EXPORT_FILE, MANIFEST, model_file
from scena.storage.run_layout import saved_model as saved_model_folder

if TYPE_CHECKING:
    from scena.data.sample import Arrays
    from scena.model.built import BuiltModel
    from scena.prediction.params import ExportFormatParams
    from scena.scenario.scenario import ScenarioBase
    from scena.scenario.stored import LoadedExport

logger = logging.getLogger(__name__)


def write_export(
    scenario: "type[ScenarioBase[Any, Any]]",
    built: "BuiltModel",
    directory: Path,
    params: ExportParams,
    *,
    saved_model: bool,
    check: Callable[[Path], None] | None = None,
    **more: Any,
) -> None:
    """Writes model, parameters and resources aside and, if a check passes, puts them in place together."""

    def fill(aside: Path) -> None:
        scenario_params, pipelines = export_resources([params.scenario, params.pipelines], aside)
        write_model(aside, built)
        if saved_model:
            _write_saved_models(aside, built, directory)
        write_description(
            aside / EXPORT_FILE,
            describe(scenario, ExportParams(scenario_params, pipelines, params.trainer), **more),
        )
        seal_tree(aside)
        if check is not None:
            check(aside)
        keep_foreign(directory, aside)

    if directory.exists() and not any(os.path.lexists(directory / name) for name in (EXPORT_FILE, MANIFEST)):
        inside = sorted(os.listdir(directory)) if directory.is_dir() else [directory.name]
        if inside:
            raise ScenarioError(
                f"{directory} is not an export, so it is not replaced: it holds {inside[0]}. Remove it."
            )
    replace_directory(directory, fill)


def write_model(directory: Path, built: "BuiltModel") -> None:
    """Writes `model.keras`, a file for each additional graph of the model, and what layers keep beside their weights."""
    remember_skipped_attributes()
    built.build_training_graph()  # its layers are in every file: reading one expects them
    for name, graph in built.graphs.items():
        graph.save(directory / model_file(name))
    write_layer_file(directory, built.layers().read())


def remember_skipped_attributes() -> None:
    """Halves the time of `Model.save`, which a training calls each time its model improves.

    For each layer Keras computes which attributes to skip by creating an empty layer. It stores the result under another name than
    the one it reads, so it never finds it again.
    """
    from keras.src.backend.common import global_state
    from keras.src.saving import saving_lib

    for kind in ("Layer", "Functional", "Sequential"):
        read_name = f"saving_attr_skiplist_{kind}"
        if global_state.get_global_attribute(read_name) is None:
            global_state.set_global_attribute(read_name, saving_lib.get_attr_skipset(kind))


def _write_saved_models(aside: Path, built: "BuiltModel", directory: Path) -> None:
    """One for each graph. A training must not fail at its end because a graph cannot be written so: it can be converted later."""
    from scena.prediction.formats.saved_model import write_saved_model

    try:
        for name, graph in built.graphs.items():
            write_saved_model(aside / saved_model_folder(name), graph)
    except ConversionError as error:
        logger.warning("%s has no SavedModel. %s", directory, error)


def complete_export(
    built: "BuiltModel",
    directory: Path,
    check: Callable[[Path], None] | None = None,
    formats: "Sequence[ExportFormatParams]" = (),
    inputs: "Callable[[], Arrays] | None" = None,
) -> None:
    """Adds what an export lacks, made of the weights that are stored there; the weights in memory stay as they are.

    Args:
        built: the model.
        directory: the export.
        check: called with the directory of the SavedModels before they are put in place.
        formats: the formats to convert it to, beside the SavedModel.
        inputs: gives a batch of real samples, to verify these.
    """
    lacks_saved_model = not (directory / saved_model_folder()).exists()
    lacking = [form for form in formats if not is_verified(directory, form)]
    if not (directory / EXPORT_FILE).is_file() or not (lacks_saved_model or lacking):
        return
    now = built.snapshot()
    try:
        built.load(directory)
        if lacks_saved_model:
            _add_saved_models(directory, lambda aside: _write_saved_models(aside, built, directory), check)
        if lacking and inputs is not None:
            _add_formats(built, directory, lacking, inputs())
    finally:
        now.put_back()


def link_saved_models(built: "BuiltModel", directory: Path, other: Path) -> None:
    """Gives an export that lacks its SavedModels those of another one, if their parameters and weights are equal."""
    folders = [saved_model_folder(graph) for graph in built.graphs]
    if not (directory / EXPORT_FILE).is_file() or (directory / saved_model_folder()).exists():
        return
    if not all((other / folder).is_dir() for folder in folders):
        return
    content = model_content(directory)
    if content is None or content != model_content(other):
        return

    def link(aside: Path) -> None:
        for folder in folders:
            link_tree(other / folder, aside / folder)

    _add_saved_models(directory, link)


def _add_saved_models(
    directory: Path, write: Callable[[Path], None], check: Callable[[Path], None] | None = None
) -> None:
    aside = directory.with_name(f".{directory.name}.saved_model")
    shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed here
    try:
        aside.mkdir()
        write(aside)
        if check is not None:
            check(aside)
        sync_tree(aside)
        add_checksums(directory, tree_checksums(aside), instead_of=[path.name for path in aside.iterdir()])
        # the default graph comes last: once it is there, all are
        for path in sorted(aside.iterdir(), reverse=True):
            put_in_place(path, directory / path.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _add_formats(
    built: "BuiltModel", directory: Path, formats: "Sequence[ExportFormatParams]", inputs: "Arrays"
) -> None:
    """Converts an export. A training must not fail at its end because a graph cannot be converted: it can be done later."""
    from scena.prediction.formats.conversion import Converter

    converter = Converter(built, directory, inputs)
    for form in formats:
        name = short_name(type(form))
        try:
            for found in converter.convert(form):
                worst = max(found.differences.values(), default=0.0)
                logger.info("Added %s: it differs by %.2g (tolerance %g)", found.path, worst, found.tolerance)
        except ConversionError as error:
            logger.warning("%s was not converted to %s. %s", directory, name, error)


def adapt(export: "LoadedExport", scenario_params: Any, directory: Path) -> None:
    """Writes an export of a model with changed parameters of its scenario to a new directory.

    Raises ScenarioError if the changed model has other weights, or the directory exists.
    """
    refuse_existing(directory)
    scenario = type(export.scenario)(scenario_params)
    old, new = export.build(), scenario.build()
    states = old.layers().read()
    new.layers().quantize(states)
    before, after = old.root.weights, new.root.weights
    _check_shapes(before, after)
    for source, target in zip(before, after, strict=True):
        target.assign(source.value)
    new.layers().set(states)
    stored = read_description(export.directory / EXPORT_FILE)
    more = {"result": stored["result"]} if "result" in stored else {}
    params = replace(export.params, scenario=scenario_params)
    scenario.export(new, directory, params, adapted_from=str(export.directory), **more)


def _check_shapes(before: list[Any], after: list[Any]) -> None:
    for old, new in zip(before, after, strict=False):
        if tuple(old.shape) != tuple(new.shape):
            problem = f"{new.path} would have the shape {tuple(new.shape)}, but the stored one has {tuple(old.shape)}"
            break
    else:
        if len(before) == len(after):
            return
        problem = f"the changed model has {len(after)} weights, the stored one {len(before)}"
    raise ScenarioError(
        f"The weights do not fit the changed parameters: {problem}. Only parameters that keep the shapes of all weights can be changed."
    )
