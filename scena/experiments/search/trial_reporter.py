"""The callback of a trial: reports its value after each epoch and ends the training if the search decides so."""

import logging
import math
from typing import Any

from scena.errors import TrainingError
from scena.experiments.search.trial import Channel
from scena.training.callbacks.monitored import MonitoredCallback

logger = logging.getLogger(__name__)


class TrialReporter(MonitoredCallback):
    """Reports to a search the value of a name, by default the one that selects the best model; TensorBoard gets the values of the
    trial.

    Of several validations in an epoch the best one counts, as for the best model; with `--metric` the last one.
    """

    def __init__(self, channel: Channel, metric: str | None, values: dict[str, Any]) -> None:
        super().__init__()
        self.channel, self.metric, self.values = channel, metric, values
        self._validated: float | None = None

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Writes the values of the trial for TensorBoard's table of hyper-parameters, once."""
        folder = self.run.paths.tensorboard
        if not self.values or list(folder.glob("events.*")):
            return
        import tensorflow as tf
        from tensorboard.plugins.hparams import api

        with tf.summary.create_file_writer(str(folder)).as_default():
            api.hparams(self.values, trial_id=self.run.directory.name)

    def on_validation(self, logs: dict[str, float]) -> None:
        if self.metric is None:
            value = self.find(logs) if self.source != "train" else None
            if value is not None and (self._validated is None or self.better(value, self._validated)):
                self._validated = value
        elif self.metric.startswith(("val_", "lav_")):
            value = self._named(logs)
            self._validated = self._validated if value is None else value

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        value, self._validated = self._validated, None
        if value is None:
            value = self.find(logs or {}) if self.metric is None else self._named(logs or {})
        if value is None:
            return
        if self.channel.report(epoch + 1, value, self.metric or self.key):
            logger.info("The search ends this trial: its values are not good enough.")
            self.model.stop_training = True

    def state(self) -> dict[str, Any]:
        return {"validated": self._validated}

    def restore(self, state: dict[str, Any]) -> None:
        self._validated = state.get("validated")

    def release(self) -> None:
        self.channel.close()

    def _named(self, logs: dict[str, float]) -> float | None:
        assert self.metric is not None
        if self.metric not in logs:
            if self.metric.startswith(("val_", "lav_")) and not any(name.startswith(self.metric[:4]) for name in logs):
                return None  # this epoch had no validation
            raise TrainingError(
                f"--metric {self.metric}: there is no such value. There are: {', '.join(sorted(logs))}."
            )
        value = float(logs[self.metric])
        return value if math.isfinite(value) else None
