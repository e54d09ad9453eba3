"""`scena launch --workers 2 train …`: a training in several processes of this machine."""

import sys

from scena.commands.usage import print_usage
from scena.params import Params, ParamsError, param, parse_options

COMMANDS = ("train", "resume")
USAGE = """usage: scena launch --workers N train SCENARIO [--flags]
       scena launch --workers N resume OUTPUT_DIR [--flags]

Starts a training in several processes on this machine, which share each batch and end with the same weights. The first one, the
chief, writes all results; what the others print begins with their name. On several machines, start `scena train` on each with
--device.dist_strategy multi_worker and --device.workers (or TF_CONFIG, or srun).

options:
  --workers N         how many processes (default: 2)
  --share_cores       let all of them use all cores; by default each gets an equal share
  --patience SECONDS  how long the others may take to leave once one has failed (default: 90)"""


class LaunchOptions(Params):
    """How many processes."""

    workers: int = param(2, ge=1, le=1000, help="how many processes")
    share_cores: bool = param(False, help="let all of them use all cores")
    patience: float = param(90.0, gt=0, help="how long the others may take to leave once one has failed, in seconds")


def run(arguments: list[str]) -> int:
    """Starts the workers and waits for them."""
    place = next((i for i, word in enumerate(arguments) if word in COMMANDS), len(arguments))
    if any(word in ("-h", "--help") for word in arguments[:place]) or not arguments:
        print_usage(USAGE)
        return 0 if arguments else 2
    options, rest = parse_options(LaunchOptions, arguments[:place])
    if rest or place == len(arguments):
        found = f" Received: {' '.join(rest)}." if rest else ""
        raise ParamsError(
            f"scena launch runs {' or '.join(COMMANDS)}: scena launch --workers 2 train SCENARIO …{found}"
        )
    command = arguments[place:]
    flags = [word.partition("=")[0].removeprefix("--trainer.").removeprefix("--") for word in command]
    for name in ("device.workers", "device.worker_index"):
        if name in flags:
            raise ParamsError(f"--{name} is for processes that are started one by one; scena launch chooses it itself")
    if any(word in ("-h", "--help") for word in command):
        from scena.commands.main import main

        return main(command)
    if options.workers == 1:
        raise ParamsError("--workers 1 is a training in one process: scena train …")
    if "device.dist_strategy" not in flags:
        command += ["--device.dist_strategy", "multi_worker"]
    from scena.backends.local_cluster import LocalCluster

    cluster = LocalCluster(
        [sys.executable, "-m", "scena", *command],
        options.workers,
        divide_cores=not options.share_cores,
        patience=options.patience,
    )
    try:
        return cluster.wait()
    finally:
        cluster.kill()
