"""Parameters of the devices a command runs on."""

from scena.params import Params, param


class DeviceParams(Params):
    """What to compute on. Without GPUs the CPU is used."""

    gpus: list[int] | None = param(
        None, help="indices of the GPUs to use; default: those of CUDA_VISIBLE_DEVICES if it is set, else none"
    )
    threads: int = param(0, ge=0, help="CPU threads for one operation (0: TensorFlow decides)")
