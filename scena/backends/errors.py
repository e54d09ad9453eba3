"""The error of a device that is not there."""

from scena.errors import ScenaError


class DeviceError(ScenaError, RuntimeError):
    """A device was asked for that cannot be used; the message lists what there is."""


class WorkerLostError(DeviceError):
    """Another process of the training is gone, or never came."""
