"""`scena launch --workers 2 train …`: a training in several processes of this machine."""

import sys

from scena.commands.command import Command
from scena.params import Params, ParamsError, param
from scena.params.cli.command_line import HELP


class LaunchOptions(Params):
    """How many processes."""

    workers: int = param(2, ge=1, le=1000, help="how many processes")
    share_cores: bool = param(False, help="let all of them use all cores; by default each gets an equal share")
    patience: float = param(90.0, gt=0, help="seconds that the others may take to end once one has failed")


class Launch(Command):
    """Starts a training in several processes on this machine, which share each batch and end with the same weights.

    The first one, the chief, writes all results; what the others print begins with their name. On several machines, start
    `scena train` on each with --device.dist_strategy multi_worker and --device.workers (or TF_CONFIG, or srun).
    """

    name = "launch"
    options: LaunchOptions
    forwards = ("train", "resume")

    def run(self) -> int:
        command = self.forwarded
        if not command:
            raise ParamsError(
                f"scena launch runs {' or '.join(self.forwards)}: scena launch --workers 2 train SCENARIO …"
            )
        flags = [word.partition("=")[0].removeprefix("--trainer.").removeprefix("--") for word in command]
        for name in ("device.workers", "device.worker_index"):
            if name in flags:
                raise ParamsError(
                    f"--{name} is for processes that are started one by one; scena launch chooses it itself"
                )
        if any(word in HELP for word in command):
            from scena.commands.main import main

            return main(command)
        if self.options.workers == 1:
            raise ParamsError("--workers 1 is a training in one process: scena train …")
        if "device.dist_strategy" not in flags:
            command += ["--device.dist_strategy", "multi_worker"]
        from scena.backends.local_cluster import LocalCluster

        cluster = LocalCluster(
            [sys.executable, "-m", "scena", *command],
            self.options.workers,
            divide_cores=not self.options.share_cores,
            patience=self.options.patience,
        )
        try:
            return cluster.wait()
        finally:
            cluster.kill()
