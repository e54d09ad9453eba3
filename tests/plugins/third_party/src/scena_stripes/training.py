"""An optimizer, a tracker and a callback that asks for checkpoints."""

import json

import keras

from scena import Tracker, TrainerCallback


class SignSGD(keras.optimizers.SGD):
    def __init__(self, share=1.0, **settings):
        super().__init__(**settings)
        self.share = share

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(keras.ops.sign(gradient), variable, learning_rate * self.share)


class Lines(Tracker):
    """After a resume, lines that will come again are removed."""

    def __init__(self, settings):
        super().__init__(settings)
        self.lines = []

    def log(self, values, step, kind):
        self.lines.append(json.dumps([step, kind, values]))
        self.settings.file.write_text("\n".join(self.lines))

    def state(self):
        return {"lines": self.lines}

    def restore(self, state):
        self.lines = list(state["lines"])


class CheckpointAt(TrainerCallback):
    def steps_until_weights(self, step):
        return min((at - step for at in self.settings.steps if at > step), default=None)

    def on_train_batch_end(self, batch, logs=None):
        if self.run.progress.step + 1 in self.settings.steps:
            self.run.request_checkpoint()
