"""Data and losses that would give plausible numbers of the wrong kind: warnings of the sanity check."""

import logging

from scena.data.batch import Batch
from scena.data.pipeline import DataPipeline
from scena.model.measures.bad_data import not_finite
from scena.model.measures.padding import FURTHER, padding_effects
from scena.model.measures.probabilities import mistaken_logits
from scena.training.run import TrainingRun

logger = logging.getLogger(__name__)


def warn_of_data(run: TrainingRun, first: Batch) -> None:
    """Warns of data that cannot be repeated, validation on the training's samples, logits for probabilities, and padding that counts."""
    for pipeline in (run.train_data, run.val_data):
        if pipeline is not None:
            _warn_if_changing(pipeline)
    if run.val_data is not None and run.val_data.has_samples_of(run.train_data):
        logger.warning(
            "Training and validation read the same samples, so the validation says nothing about new data: let the mode of the source "
            "decide, or name other data with --val."
        )
    found = not_finite(first)
    if found:
        logger.warning("The training data is not finite: %s.", found)
    for line in mistaken_logits(run.model, first.inputs, first.targets):
        logger.warning("%s", line)
    for name, (value, padded) in padding_effects(run.model, run.built.data, first.inputs, first.targets).items():
        logger.warning(
            "Padding counts in %r: it changes from %.4g to %.4g when the samples of a batch are padded by %d more, so it depends on the "
            "batch size. Mask what is not there.",
            name, value, padded, FURTHER,
        )  # fmt: skip


def _warn_if_changing(pipeline: DataPipeline) -> None:
    part = pipeline.changing_part()
    if part is not None:
        logger.warning(
            "%s makes %s of the %s data differently each time, so the run cannot be repeated or resumed exactly. Take random numbers "
            "from `rng` (apply(self, sample, rng)), or seed them by the index of the sample, and keep nothing from sample to sample.",
            *part, pipeline.mode.value,
        )  # fmt: skip
