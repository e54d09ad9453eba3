"""`scena devices`: what there is to compute on."""

import os

from scena.commands.command import Command


class Devices(Command):
    """Lists the CPUs and GPUs that TensorFlow sees, with the index that --device.gpus takes."""

    name = "devices"

    def run(self) -> None:
        self.start()
        from scena.backends.tensorflow.backend import describe_devices

        print("\n".join(describe_devices(os.environ)))
