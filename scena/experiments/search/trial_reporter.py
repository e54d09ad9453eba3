"""The callback of a trial: reports the value that decides after each epoch, ends the training if the search says so."""

import logging
import math
from typing import Any

from scena.experiments.search.trial import Channel
from scena.training.callbacks.monitored import MonitoredCallback
from scena.training.errors import TrainingError

logger = logging.getLogger(__name__)


class TrialReporter(MonitoredCallback):
    """Reports to a search.

    Args:
        channel: the way to it.
        metric: the name of the value to report; the one that decides which model is the best, if None.
        values: the values of this trial, for TensorBoard.
    """

    def __init__(self, channel: Channel, metric: str | None, values: dict[str, Any]) -> None:
        super().__init__()
        self.channel, self.metric, self.values = channel, metric, values

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Writes the values of the trial for TensorBoard's table of hyper-parameters, once."""
        folder = self.run.paths.tensorboard
        if not self.values or list(folder.glob("events.*")):
            return
        import tensorflow as tf
        from tensorboard.plugins.hparams import api

        with tf.summary.create_file_writer(str(folder)).as_default():
            api.hparams(self.values, trial_id=self.run.directory.name)

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Reports, and asks."""
        value = self.find(logs or {}) if self.metric is None else self._named(logs or {})
        if value is None:
            return
        if self.channel.report(epoch + 1, value, self.metric or self.key):
            logger.info("The search ends this trial: it is not worth going on.")
            self.model.stop_training = True

    def _named(self, logs: dict[str, float]) -> float | None:
        assert self.metric is not None
        if self.metric not in logs:
            if self.metric.startswith(("val_", "lav_")) and not any(name.startswith(self.metric[:4]) for name in logs):
                return None  # this epoch had no validation
            raise TrainingError(f"--metric {self.metric}: there are only {sorted(logs)}.")
        value = float(logs[self.metric])
        return value if math.isfinite(value) else None
