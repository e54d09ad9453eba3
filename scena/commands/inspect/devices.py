"""`scena devices`: what there is to compute on."""

import os

from scena.commands.usage import print_usage
from scena.params import Params, parse_options

USAGE = """usage: scena devices

Lists the CPUs and GPUs that TensorFlow sees, with the index that --device.gpus takes."""


class DevicesOptions(Params):
    """None so far."""


def run(arguments: list[str]) -> int:
    """Lists devices."""
    if any(argument in ("-h", "--help") for argument in arguments):
        print_usage(USAGE)
        return 0
    _, rest = parse_options(DevicesOptions, arguments)
    if rest:
        from scena.params import ParamsError

        raise ParamsError(f"scena devices takes no arguments. Received: {' '.join(rest)}")
    from scena.commands.scenario_argument import start_work

    start_work()
    from scena.backends.devices import describe_devices

    print("\n".join(describe_devices(os.environ)))
    return 0
